"""Collections of pairs."""
