"""Hashes of configurations: each field of the virtual nodes counts, those in use and one that would be new."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import pytest

from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.graph.vocabulary import Counts, Vocabulary
from graphs.stores.tensor_identity import config_hash, spec_of_hash
from mathamr.default_settings import values
from mathamr.stages.settings import GraphConfig

VOCABULARY = Vocabulary.build(Counts(), size=8)


@dataclass(frozen=True, slots=True)
class WiderSpec(VirtualNodeSpec):
    """Virtual nodes with a further setting."""

    next_formula: bool = False

    @classmethod
    def choices(cls) -> dict[str, tuple[Any, ...]]:
        return {**VirtualNodeSpec.choices(), "next_formula": (False, True)}


def test_every_field_has_choices_and_is_a_setting_of_the_group_graph() -> None:
    names = [one.name for one in fields(VirtualNodeSpec)]
    assert list(VirtualNodeSpec.choices()) == names
    assert set(names) <= {one.name for one in fields(GraphConfig)} & values("graph").keys()
    assert VirtualNodeSpec.of(values("graph")) == VirtualNodeSpec()
    varied = [{getattr(spec, name) for spec in VirtualNodeSpec.every()} for name in names]
    assert varied == [set(allowed) for allowed in VirtualNodeSpec.choices().values()]


@pytest.mark.parametrize("kind", [VirtualNodeSpec, WiderSpec])
def test_a_model_finds_its_virtual_nodes_by_their_hash(kind: type[VirtualNodeSpec]) -> None:
    specs = kind.every()
    hashes = [config_hash(spec, VOCABULARY) for spec in specs]
    assert len(set(hashes)) == len(specs)
    found = [
        spec_of_hash(one, kind(formulas=spec.formulas), VOCABULARY) for one, spec in zip(hashes, specs, strict=True)
    ]
    assert found == specs
    assert spec_of_hash(None, specs[-1], VOCABULARY) == spec_of_hash("beef", specs[-1], VOCABULARY) == specs[-1]


def test_a_further_field_leaves_hashes_as_they_are() -> None:
    for spec in VirtualNodeSpec.every():
        wider = WiderSpec(**{one.name: getattr(spec, one.name) for one in fields(spec)})
        assert config_hash(wider, VOCABULARY) == config_hash(spec, VOCABULARY)
    assert VirtualNodeSpec().content() == {"structure": "full", "connectivity": "none", "formulas": "both"}
    assert WiderSpec(thread="question", next_formula=True).content() == {
        **VirtualNodeSpec().content(),
        "thread": "question",
        "next_formula": True,
    }
