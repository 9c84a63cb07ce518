"""Settings of the systems of this package."""
