"""Language models that are asked, on a server or in this process, and their answers on disk."""
