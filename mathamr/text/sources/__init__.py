"""Sources of papers and pairs: archives, folders, plain text."""
