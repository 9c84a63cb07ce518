"""Trained models as folders, and the class that reads text with one."""
