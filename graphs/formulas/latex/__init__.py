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

The trees equal those of LaTeXML, which made the published indexes, if LaTeXML can parse the formula. Another formula is
parsed if its meaning is clear (:mod:`.grammar.repair`), and otherwise becomes an ``E!`` tree that keeps its symbols.
Scripts of functions such as ``max`` are beside the function, as in an inline formula; after ``\displaystyle`` they are
below and above.

No other library does this. latex2mathml makes a layout without content, with all symbols of a formula in one row:
without a grammar it recognises no fences, no elements within them, and no differentials. Of 1,094 official formulas of
ARQMath, 58 % get the official layout tree from it, and 99 % from this package, which is three times as fast. pylatexenc
reads TeX well, with macros and environments, but its reading alone takes five times as long as this whole package.
"""

from graphs.formulas.latex.parser import MAX_CHARACTERS, parse_latex
from graphs.formulas.latex.tokens import Macro, Macros, read_macros

__all__ = ["MAX_CHARACTERS", "Macro", "Macros", "parse_latex", "read_macros"]
