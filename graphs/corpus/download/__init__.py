"""Files of a collection from the web."""
