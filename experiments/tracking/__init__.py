"""Tracking of runs with Weights & Biases: sweeps that are checked before they are made."""
