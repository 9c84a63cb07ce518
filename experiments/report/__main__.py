"""Command ``python -m experiments.report DIR... [--out DIR]``: one report of several experiments."""

import sys

from experiments.report.writing import main

if __name__ == "__main__":
    sys.exit(main())
