"""Loads the parser's model of spaCy when it is imported, once for all processes that are forked then."""

from graphs.amr.embedded import EmbeddedParser

EmbeddedParser()
