"""The collection that comes with the installation: docstrings of mathematical packages."""
