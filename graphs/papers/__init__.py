"""LaTeX papers: from an archive to plain text with formulas."""
