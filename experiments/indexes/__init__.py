"""Searchable indexes of finished jobs."""
