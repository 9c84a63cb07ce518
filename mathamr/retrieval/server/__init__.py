"""A Qdrant server as the place of an index: connection, settings of a collection, and how far the server is with it."""
