"""LaTeX of papers, before it is read as text."""
