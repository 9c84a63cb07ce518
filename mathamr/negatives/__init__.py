"""Hard negatives: documents that rank high for a query and do not answer it."""
