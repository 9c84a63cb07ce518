"""Grammar of formulas: a list of symbols -> its parse.

>>> from graphs.formulas.latex.reader import Reader
>>> parsed = parse_list(Reader("2x+1").formula())
>>> type(parsed).__name__, parsed.op.name, len(parsed.args)
('Infix', 'plus', 2)

Each module reads a larger part than the one before: :mod:`.cursor` (scripts and lone operators), :mod:`.fences`,
:mod:`.factors`, :mod:`.terms` (sums and products), :mod:`.statements` (formulas and relations). A list that these do
not read is mended (:mod:`.repair`, :mod:`.bars`) and tried again; if that fails, it becomes a row for each fence.
"""

from graphs.formulas.latex.grammar.statements import parse_list

__all__ = ["parse_list"]
