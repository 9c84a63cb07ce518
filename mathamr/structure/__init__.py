"""Search for formulas by the structure of their trees: an inverted index of symbol pairs, and alignment of trees."""
