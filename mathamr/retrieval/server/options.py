"""Settings of a collection on a Qdrant server.

>>> ServerOptions(quantization="binary").oversampling
3.0
>>> ServerOptions(quantization="product")
Traceback (most recent call last):
    ...
graphs.errors.ConfigError: quantization='product' is unknown. Choose from: none, scalar, binary
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from graphs.errors import ConfigError

Quantization = Literal["none", "scalar", "binary"]
CREATED_WITH = ("shards", "replicas", "write_consistency", "quantization", "on_disk")
"""Options that a collection is created with: one with other values is another collection."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Settings of a collection on a server, and the patience of its client.

    Args:
        alias: name under which the collection is found.
        shards: parts of the collection, spread over the nodes of a cluster.
        replicas: copies of each shard; 2 survives the loss of a node.
        write_consistency: replicas that confirm a write before it counts as done.
        quantization: second, smaller form of the vectors in memory that an approximate search compares: ``scalar``
            takes a byte for each number, ``binary`` a bit. Candidates are scored again with the original vectors.
        on_disk: keep the original vectors and the payload on disk, not in memory.
        batch_bytes: bytes of an upload request; Qdrant refuses requests above 32 MiB.
        retries: further attempts of a request that fails, after ``wait`` times 1, 2, 4 ... seconds, 30 at most.
        wait: seconds before the first further attempt.
        timeout: seconds that a request may take.
        poll: seconds between two looks at a server that builds its graphs.
        patience: seconds without progress after which a build of graphs counts as failed.

    Raises:
        ConfigError: an unknown quantization, or a number that is too small.
    """

    alias: str = "mathamr"
    shards: int = 1
    replicas: int = 1
    write_consistency: int = 1
    quantization: Quantization = "none"
    on_disk: bool = False
    batch_bytes: int = 8 << 20
    retries: int = 7
    wait: float = 1.0
    timeout: int = 60
    poll: float = 2.0
    patience: float = 1800.0

    def __post_init__(self) -> None:
        if self.quantization not in get_args(Quantization):
            known = ", ".join(get_args(Quantization))
            raise ConfigError(f"quantization={self.quantization!r} is unknown. Choose from: {known}")
        for name in ("shards", "replicas", "write_consistency", "batch_bytes", "timeout"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)} of a Qdrant server; use at least 1")
        if self.write_consistency > self.replicas:
            raise ConfigError(
                f"write_consistency={self.write_consistency} exceeds replicas={self.replicas}; no write could be done"
            )

    @property
    def oversampling(self) -> float:
        """Candidates for each result that quantized vectors choose before the original vectors rank them."""
        return {"none": 1.0, "scalar": 2.0, "binary": 3.0}[self.quantization]
