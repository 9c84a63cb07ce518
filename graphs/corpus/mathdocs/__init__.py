"""Collection that every installation has: docstrings of mathematical packages."""
