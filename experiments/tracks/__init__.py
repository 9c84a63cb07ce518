"""The tracks: ways to learn and search the same posts."""

from pathlib import Path

from experiments.progress import Console
from experiments.tracks.track import Track
from graphs.corpus.corpus import Corpus
from graphs.errors import ConfigError

TRACKS = ("graph", "text", "bm25", "fusion", "run")


def open_track(name: str, corpus: Corpus, shared: Path, console: Console) -> Track:
    """The track of this name for a collection; ``shared`` is the folder for what its jobs share."""
    if name == "graph":
        from experiments.tracks.graph import GraphTrack

        return GraphTrack(corpus, shared, console)
    if name == "text":
        from experiments.tracks.text import TextTrack

        return TextTrack(corpus, shared, console)
    if name == "bm25":
        from experiments.tracks.bm25 import BM25Track

        return BM25Track(corpus, shared, console)
    if name == "fusion":
        from experiments.tracks.fusion import FusionTrack

        return FusionTrack(corpus, shared, console)
    if name == "run":
        from experiments.tracks.given_run import GivenRunTrack

        return GivenRunTrack(corpus, shared, console)
    raise ConfigError(f"track={name} is not known; the tracks are {', '.join(TRACKS)}")
