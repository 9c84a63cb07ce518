"""Indexes that people search, of finished jobs."""
