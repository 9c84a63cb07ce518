"""ARQMath as it is published, or in any arrangement of the same files.

``ArqMath(Path("/data/ARQMath"))`` reads zips, gzipped and plain files, in the published folders or in one. A file is
known by its content; names decide between candidates.
"""

from graphs.corpus.arqmath.collection import ArqMath, PostLink

__all__ = ["ArqMath", "PostLink"]
