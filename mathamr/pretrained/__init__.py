"""Trained models saved as folders, and the class that encodes text with them."""
