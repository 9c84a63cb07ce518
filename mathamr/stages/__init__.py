"""Stages of the pipeline, each once: commands and experiments call them."""
