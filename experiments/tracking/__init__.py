"""Tracking of runs with Weights & Biases: logbooks, and sweeps that are checked before they are made."""
