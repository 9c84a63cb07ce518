"""Collections of documents, queries and judgments."""
