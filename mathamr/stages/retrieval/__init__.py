"""Indexes for people, run files, fusions and scores; each stage one function."""
