"""Papers and pairs as they arrive: archives, folders, plain text."""
