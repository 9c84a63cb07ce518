"""Sources of papers, splits, questions and pairs."""
