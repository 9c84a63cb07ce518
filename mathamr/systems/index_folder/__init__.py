"""Index folder of any system: written from a finished job, opened for search."""
