"""A post as a MathAMR+ graph, from Penman text to the arrays of a batch."""
