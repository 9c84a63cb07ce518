"""Graphs of a whole collection on disk."""
