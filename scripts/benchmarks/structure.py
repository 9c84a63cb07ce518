r"""Structure search: its speed beside BM25 over symbol pairs, and what it finds of renamed and of enclosed formulas.

    python scripts/bench.py structure --formulas 100000     # generated formulas, ten results a query
    python scripts/bench.py structure --root ARQMATH        # real formulas: speed, and both proofs

Generated formulas are sums, fractions, powers and integrals of random parts, of the sizes of real ones. Both searches
get the same formulas and queries, in turns, in one process.

**Renamed**: of real formulas, the variables of a formula get other letters, one for each. The formula itself, or one that
is equal to it up to a renaming, has to be first. Only formulas with a variable and at least five symbols are asked for.
**Enclosed**: the same formulas as one side of an equation whose other side is another real formula. The
formula itself, or a longer one that contains it, has to be among the first ten.
"""

from __future__ import annotations

import argparse
import json
import random
import string
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from experiments.command import command
from graphs.corpus.corpus import open_corpus
from graphs.corpus.post import Post
from graphs.corpus.text.placeholders import extract
from graphs.formulas.latex import parse_latex
from graphs.formulas.tree import FormulaTree, ParsedFormula
from graphs.graph.graph_maker import FormulaTrees
from mathamr.default_settings import default_settings
from mathamr.retrieval.bm25 import BM25Index, tokens_of_formula
from mathamr.retrieval.lexical import distinct_formulas
from mathamr.structure.index import StructureIndex
from mathamr.structure.scoring import VARIABLE, Scoring, symbol_class
