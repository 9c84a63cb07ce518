"""Keys of the group graph: a further setting with its default renames no file and no model."""

from __future__ import annotations

from dataclasses import dataclass

from graphs.graph.virtual_nodes import VirtualNodeSpec
from mathamr.default_settings import values
from mathamr.stages.settings import GraphConfig


@dataclass(frozen=True, kw_only=True)
class WiderConfig(GraphConfig):
    """Settings of graphs with one more."""

    one_variable: bool = False


def test_tensors_depend_on_what_is_stored() -> None:
    stored = {"parser": "embedded", "formulas": "both", "vocabulary_size": 20000, "number_threshold": 5}
    for spec in VirtualNodeSpec.every(formulas="both"):
        settings = values("graph") | spec.content()
        assert GraphConfig(**settings).stored_parts() == stored
        assert GraphConfig(**settings).key_parts() == stored | spec.content()
        assert WiderConfig(**settings).stored_parts() == stored
        assert WiderConfig(**settings).key_parts() == stored | spec.content()
        assert WiderConfig(**settings, one_variable=True).stored_parts() == stored | {"one_variable": True}
    assert GraphConfig(**values("graph") | {"formulas": "opt"}).stored_parts() == stored | {"formulas": "opt"}
