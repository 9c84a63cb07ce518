"""Built-in systems: the settings of each, and where its class is.

>>> list(BUILT_IN["graph"].settings.groups())
['graph', 'train', 'index', 'retrieval', 'thread', 'model']
>>> BUILT_IN["bm25"].place
'mathamr.systems.bm25:BM25System'

Settings are read, and jobs are planned, without torch: a system is imported when one of its jobs runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mathamr.stages.settings import JobSettings
from mathamr.systems.settings.combined import FusionSettings, LearnedSettings
from mathamr.systems.settings.models import GraphSettings, TextSettings
from mathamr.systems.settings.ranking import BM25Settings, GivenRunSettings, LatentSettings, StructureSettings
from mathamr.systems.settings.rerank import RerankSettings


class BuiltIn(NamedTuple):
    """A system of this package: its settings, and its class as ``MODULE:CLASS``, imported when it is used."""

    settings: type[JobSettings]
    place: str


BUILT_IN: Mapping[str, BuiltIn] = {
    "graph": BuiltIn(GraphSettings, "mathamr.systems.graph:GraphSystem"),
    "text": BuiltIn(TextSettings, "mathamr.systems.text:TextSystem"),
    "bm25": BuiltIn(BM25Settings, "mathamr.systems.bm25:BM25System"),
    "structure": BuiltIn(StructureSettings, "mathamr.systems.structure:StructureSystem"),
    "latent": BuiltIn(LatentSettings, "mathamr.systems.latent:LatentSystem"),
    "fusion": BuiltIn(FusionSettings, "mathamr.systems.fusion:FusionSystem"),
    "learned": BuiltIn(LearnedSettings, "mathamr.systems.learned:LearnedSystem"),
    "rerank": BuiltIn(RerankSettings, "mathamr.systems.rerank:RerankSystem"),
    "run": BuiltIn(GivenRunSettings, "mathamr.systems.given_run:GivenRunSystem"),
}
"""Systems by their value of ``track=``."""
