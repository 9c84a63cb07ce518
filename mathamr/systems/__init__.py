"""The tracks: ways to learn and search the same posts."""

from pathlib import Path

from graphs.corpus.corpus import Corpus
from graphs.errors import ConfigError
from mathamr.stages.console import Console
from mathamr.stages.system import Track

TRACKS = ("graph", "text", "bm25", "fusion", "run")


def open_track(name: str, corpus: Corpus, shared: Path, console: Console) -> Track:
    """The track of this name for a collection; ``shared`` is the folder for what its jobs share."""
    if name == "graph":
        from mathamr.systems.graph import GraphTrack

        return GraphTrack(corpus, shared, console)
    if name == "text":
        from mathamr.systems.text import TextTrack

        return TextTrack(corpus, shared, console)
    if name == "bm25":
        from mathamr.systems.bm25 import BM25Track

        return BM25Track(corpus, shared, console)
    if name == "fusion":
        from mathamr.systems.fusion import FusionTrack

        return FusionTrack(corpus, shared, console)
    if name == "run":
        from mathamr.systems.given_run import GivenRunTrack

        return GivenRunTrack(corpus, shared, console)
    raise ConfigError(f"track={name} is not known; the tracks are {', '.join(TRACKS)}")
