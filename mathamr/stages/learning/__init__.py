"""Training of graph models and text encoders, and the files that they learn from."""
