"""Stages from posts to tensors: formula trees, graphs, texts, vocabulary; each stage one function."""
