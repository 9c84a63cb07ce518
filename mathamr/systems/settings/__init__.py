"""Settings of the systems of this package, read without torch."""
