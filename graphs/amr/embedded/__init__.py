"""AMR parser that installs from the package index and runs on a CPU: spaCy's dependencies, and rules over them.

>>> parser = EmbeddedParser()
>>> parser.parse([["Prove that FORMULA_0 is finite."]])
['(p / prove-01 :mode imperative :ARG0 (y / you) :ARG1 (f2 / finite :domain (f / FORMULA_0)))']

Published results need a neural parser (:mod:`graphs.amr.transition`, :mod:`graphs.amr.amrlib`). This parser is for
first runs, tests and machines without an accelerator. docs/amr.md has its Smatch scores.

A sentence goes through :mod:`.typed` (mathematics without dollars), :mod:`.reading` (mathematical English in words that
spaCy knows), :mod:`.concepts`, :mod:`.clauses`, :mod:`.relations` and :mod:`.relating`; :mod:`.draft` holds its graph.
:mod:`.words` and :mod:`.lexicon` describe words; the latter reads ``frames.json``, derived from the AMR lists and from
gold graphs.
"""

from graphs.amr.embedded.parser import EmbeddedParser

__all__ = ["EmbeddedParser"]
