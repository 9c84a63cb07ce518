"""Loads the model of spaCy and the stemmer when it is imported, once for all processes that are forked then."""

from graphs.amr.embedded import EmbeddedParser
from graphs.graph.labels import porter_stemmer

EmbeddedParser()
porter_stemmer()
