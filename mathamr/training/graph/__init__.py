"""Training of the graph encoder."""
