"""Exact search: an index that compares every query with every vector, its layout, and a fast first pass over codes."""
