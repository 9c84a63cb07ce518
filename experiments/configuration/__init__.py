"""Configuration: its types, how Hydra composes it, the changes of conditions, and errors in it."""
