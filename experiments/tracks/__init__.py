"""The tracks: ways to learn and search the same posts."""

from experiments.tracks.track import Track
from graphs.errors import ConfigError

TRACKS = ("graph",)


def open_track(name: str) -> Track:
    """The track of this name."""
    if name == "graph":
        from experiments.tracks.graph import GraphTrack

        return GraphTrack()
    raise ConfigError(f"track={name} is not known; the tracks are {', '.join(TRACKS)}")
