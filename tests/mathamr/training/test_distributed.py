"""Two ranks compute what one computes; one that dies stops the run."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny_collection import ENCODER, settings, with_vectors

from graphs.corpus.post import Pair
from graphs.errors import ConfigError
from graphs.stores.store import GraphStore
from mathamr.maxsim import VectorSets
from mathamr.training import checkpoint
from mathamr.training.distributed import Ranks, ranks
from mathamr.training.graph.learner import Learner
from mathamr.training.graph.loading import TrainingBatches
from mathamr.training.graph.trainer import train
from mathamr.training.pairs import split_pairs
from tests.warm_process import Ended, Process, free_port, start

HERE = Path(__file__).parent
PROLOGUE = """
import json, os, signal, sys, torch
sys.path[:0] = [{folder!r}, {above!r}]
from tiny_collection import ENCODER, QUESTIONS, settings
from graphs.corpus.post import Pair
from graphs.stores.store import GraphStore
from mathamr.training.distributed import ranks

rank = int(os.environ["RANK"])
store = GraphStore({store!r})
pairs = [Pair(f"q{{i}}", f"a{{i}}") for i in range(QUESTIONS)]
"""

STEPS = """
from safetensors.torch import save_file
from mathamr.text.sentence_vectors import SentenceVectors
from test_distributed import learner_and_batch

hybrid = GraphStore({store!r}, sentence_vectors=SentenceVectors({{"": {vectors!r}}}, encoder="letters"))
losses = {{}}
with ranks("cpu") as world:
    assert world.shared_text(f"ranks π {{rank}}") == "ranks π 0"
    for negatives in (0, 1, 3):
        learner, batch = learner_and_batch(hybrid if negatives == 1 else store, pairs, world, negatives)
        record = learner.step([batch], 1e-3)
        losses[negatives] = [record["loss"], record["grad_norm"]]
        gradients = {{name: parameter.grad for name, parameter in learner._parameters.items()}}
        save_file(gradients, f"{out}/{{negatives}}-{{rank}}.safetensors")
if rank == 0:
    print(json.dumps(losses))
"""

TRAIN = """
from mathamr.training.graph.trainer import train

steps = []
def log(record):
    if record["kind"] == "step":
        steps.append(record["step"])
        if record["step"] == {kill_at}:
            os.kill(os.getpid(), signal.{signal})

result = train(settings(**{changes!r}), store, pairs, ENCODER, out={out!r}, log=log)
print(json.dumps([len(steps), result.loss_curve]))
"""


def learner_and_batch(store: GraphStore, pairs: list[Pair], world: Ranks, negatives: int):  # type: ignore[no-untyped-def]
    """A fresh model and seven pairs, which two ranks share as four and three."""
    config = settings(
        batch_size=7, negatives=negatives, beta=0.5, symmetric=True, node_mask=0.0, edge_dropout=0.0, node_budget=90
    )
    if negatives == 1:  # also with the losses over formulas
        config = replace(config, formula_weight=0.3, formula_view_weight=0.2)
    split = split_pairs(pairs, set(store.post_ids()), validation_fraction=0.25)
    text = store.sentence_vectors
    encoder_config = ENCODER if text is None else replace(ENCODER, sentence_vectors=text.encoder)
    learner = Learner(config, encoder_config, store, world)
    batches = TrainingBatches(store, split, config, world)
    batches.negatives = {f"q{i}": [f"a{k}" for k in range(48)] for i in range(48)}
    batches.visual_ids = {f"{kind}{i}": [f"v{i % 16}"] for i in range(48) for kind in "qa"}
    return learner, batches.batch(split.train[:7], 0, 0)


def two_ranks(code: str, folder: Path, **values: Any) -> list[Process]:
    text = (PROLOGUE + code).format(folder=str(HERE), above=str(HERE.parent), **values)
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    return [start(text, folder, **shared, RANK=str(rank), LOCAL_RANK=str(rank)) for rank in range(2)]


def finish(processes: list[Process]) -> list[Ended]:
    return [process.ended() for process in processes]


def test_two_ranks_have_the_loss_and_gradient_of_one(store: GraphStore, pairs: list[Pair], tmp_path: Path) -> None:
    """With 0, 1 and 3 hard negatives a question, shares of unequal size, in chunks; with 1 a hybrid."""
    hybrid, vectors = with_vectors(store, tmp_path), str(tmp_path / "letters.db")
    done = finish(two_ranks(STEPS, tmp_path, store=str(store.path), vectors=vectors, out=str(tmp_path)))
    assert [code for code, _, _ in done] == [0, 0], done
    losses = json.loads(done[0][1])
    for negatives in (0, 1, 3):
        one = Ranks(0, 1, torch.device("cpu"))
        learner, batch = learner_and_batch(hybrid if negatives == 1 else store, pairs, one, negatives)
        record = learner.step([batch], 1e-3)
        assert ("features.sentences.weight" in learner._parameters) == (negatives == 1)
        assert losses[str(negatives)] == pytest.approx([record["loss"], record["grad_norm"]], rel=1e-6)
        found = [load_file(tmp_path / f"{negatives}-{rank}.safetensors") for rank in range(2)]
        for name, parameter in learner._parameters.items():
            assert torch.equal(found[0][name], found[1][name])
            torch.testing.assert_close(found[0][name], parameter.grad, rtol=1e-4, atol=1e-6)


def test_two_ranks_train_go_on_after_kill_9_and_equal_one_rank(
    store: GraphStore, pairs: list[Pair], tmp_path: Path
) -> None:
    changes = {"epochs": 2, "batch_size": 7, "checkpoint_every": 2, "learning_rate": 1e-3, "node_budget": 90}
    changes |= {"node_mask": 0.0, "edge_dropout": 0.0}  # each rank draws its own
    common = {"store": str(store.path), "changes": changes, "signal": "SIGKILL"}
    whole = two_ranks(TRAIN, tmp_path, kill_at=0, out=str(tmp_path / "whole"), **common)
    killed = finish(two_ranks(TRAIN, tmp_path, kill_at=8, out=str(tmp_path / "killed"), **common))
    assert killed[0][0] == -signal.SIGKILL
    assert killed[1][0] == 1
    assert "lost another rank while" in killed[1][2]
    assert "holds step 6)" in killed[1][2]
    resumed = finish(two_ranks(TRAIN, tmp_path, kill_at=0, out=str(tmp_path / "killed"), **common))
    done = finish(whole)
    assert [code for code, _, _ in done + resumed] == [0] * 4, (done, resumed)
    steps, curve = json.loads(done[0][1])
    assert steps == len(curve) == 10
    assert json.loads(done[1][1]) == [0, curve]  # equal step counts; rank 0 alone logs
    assert json.loads(resumed[0][1])[1] == curve
    for name in ("best/model.safetensors", "last/model.safetensors", "last/state.safetensors"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    one = train(settings(**changes), store, pairs, ENCODER, out=tmp_path / "one")
    assert curve == pytest.approx(one.loss_curve, rel=1e-4)
    infos = [checkpoint.load(tmp_path / name / "best").info for name in ("one", "whole")]
    assert infos[1].best_val_loss == pytest.approx(infos[0].best_val_loss, rel=1e-4)


def test_a_signal_to_one_rank_stops_all_after_the_same_step(
    store: GraphStore, pairs: list[Pair], tmp_path: Path
) -> None:
    common = {"store": str(store.path), "changes": {"epochs": 2}, "signal": "SIGTERM"}
    done = finish(two_ranks(TRAIN, tmp_path, kill_at=3, out=str(tmp_path), **common))
    assert [code for code, _, _ in done] == [1, 1]
    assert all("Interrupted" in err and "after step 3, saved" in err for _, _, err in done)
    assert checkpoint.load(tmp_path / "last").info.step == 3


def test_a_rank_without_memory_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has lost no other rank."""

    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr("torch.distributed.all_gather", full)
    with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
        Ranks(0, 2, torch.device("cpu")).gather(VectorSets.of([torch.eye(2)]))


def test_a_device_that_is_not_there_is_refused() -> None:
    with ranks("cpu") as world:
        assert world == Ranks(0, 1, torch.device("cpu"))
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="cuda is not available"), ranks("cuda"):
            pass
    with pytest.raises(ConfigError, match="abacus is not a device"), ranks("abacus"):
        pass
