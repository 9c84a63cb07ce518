"""Search for people: an index with its model, on the command line and in a browser."""
