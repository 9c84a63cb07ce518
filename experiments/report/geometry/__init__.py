"""Parts of a report about vectors: the embedding space, confidence of single topics, domain shift."""
