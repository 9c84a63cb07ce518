"""Analyses of a job's vectors and results."""
