r"""LaTeX -> symbol layout tree and operator tree, in process and without an external program.

>>> parsed = parse_latex(r"x^2+y")
>>> parsed.slt.tangent_string()
'[V!x[+[V!y]],a[N!2]]'
>>> parsed.opt.tangent_string()
'[U!plus,0[O!SUP,0[V!x],1[N!2]],1[V!y]]'
>>> parse_latex(r"a)").opt.tangent_string()  # what cannot be read keeps its symbols
'[E!,0[O!fragments],1[-!a],2[V!)]]'
>>> macros = read_macros(r"\newcommand{\norm}[1]{\|#1\|}")  # of the formula's post
>>> parse_latex(r"\norm{v}", macros).opt.tangent_string()
'[O!norm,0[V!v]]'

The modules, in the order of their use: :mod:`.tokens` (text to tokens, and macros), :mod:`.reader` and
:mod:`.commands` (tokens to lists of symbols with their parts of speech), :mod:`.grammar` (a parse of each list),
:mod:`.layout` and :mod:`.content` (the parse to the two trees), :mod:`.parser` (all of it).

The trees follow LaTeXML, which made the indexes, wherever LaTeXML has a reading. A formula that LaTeXML leaves unread
is read if its meaning is plain (:mod:`.grammar.repair`), and otherwise becomes an ``E!`` tree that keeps its symbols.
Scripts of functions such as ``max`` are beside the function, as in an inline formula; after ``\displaystyle`` they are
below and above.

No library does this. latex2mathml lays a formula out, but without content, and it puts all symbols of a formula in one
row: without a grammar there are no fences, no elements within them, no differentials. Of 1,094 official formulas of
ARQMath, 58 % get the official layout tree through it, 99 % through this package, at three times its speed. pylatexenc
reads TeX well, with macros and environments, but its reading alone takes five times as long as this whole package.
"""

from graphs.formulas.latex.parser import MAX_CHARACTERS, parse_latex
from graphs.formulas.latex.tokens import Macro, Macros, read_macros

__all__ = ["MAX_CHARACTERS", "Macro", "Macros", "parse_latex", "read_macros"]
