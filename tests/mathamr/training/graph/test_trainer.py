"""Training learns, repeats itself to the bit, goes on after whatever stopped it, and says what is wrong."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_collection import ENCODER, QUESTIONS, encoder_config, settings

from graphs.corpus.post import Pair
from graphs.errors import ConfigError, TrainingError
from graphs.graph.batching import GraphBatch
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.stores.store import GraphStore
from mathamr.maxsim import VectorSets
from mathamr.model.encoder import Encoder
from mathamr.training import checkpoint
from mathamr.training.graph import trainer
from mathamr.training.graph.trainer import train
from mathamr.training.graph.validation import Validation
from mathamr.training.interruption import Interrupted
from mathamr.training.result import ValidationScore
from tests.warm_process import Ended, start


def curve(store: GraphStore, pairs: list[Pair], out: Path, **changes: Any) -> tuple[float, ...]:
    return train(settings(**changes), store, pairs, ENCODER, out=out).loss_curve


def content(out: Path) -> dict[str, bytes]:
    """All that a run leaves but for times."""
    names = ("best/model.safetensors", "last/model.safetensors", "last/state.safetensors")
    return {name: (out / name).read_bytes() for name in names}


def test_training_learns(store: GraphStore, pairs: list[Pair], tmp_path: Path) -> None:
    records: list[dict[str, Any]] = []
    result = train(settings(epochs=10), store, pairs, ENCODER, out=tmp_path, log=records.append)
    untrained = train(
        settings(epochs=1, learning_rate=1e-9, min_learning_rate=0), store, pairs, ENCODER, out=tmp_path / "0"
    )
    assert result.best_val_mrr > untrained.best_val_mrr + 0.2
    assert result.best_val_loss < 0.6 * untrained.best_val_loss
    assert sum(result.loss_curve[-4:]) < 0.5 * sum(result.loss_curve[:4])
    assert result.train_pairs == 36
    assert result.validation_pairs == 12
    assert result.parameters["total"] == sum(result.parameters.values()) / 2
    start, *rest = records
    assert start["kind"] == "start"
    steps = [record for record in rest if record["kind"] == "step"]
    epochs = [record for record in rest if record["kind"] == "epoch"]
    assert [record["step"] for record in steps] == list(range(1, 41))
    assert steps[0]["learning_rate"] == 1e-2
    assert steps[-1]["learning_rate"] == 1e-3
    assert all(record["graphs_per_s"] > 0 and record["waited_s"] >= 0 for record in steps)
    assert steps[-1]["temperature"] != steps[0]["temperature"]
    assert result.best_val_loss == min(record["val_loss"] for record in epochs)
    assert [record["step"] for record in epochs if record["val_loss"] == result.best_val_loss] == [result.best_step]


def test_the_same_seed_gives_the_same_curve(store: GraphStore, pairs: list[Pair], tmp_path: Path) -> None:
    first = curve(store, pairs, tmp_path / "1", epochs=2, beta=0.5)
    assert curve(store, pairs, tmp_path / "2", epochs=2, beta=0.5) == first
    assert content(tmp_path / "1") == content(tmp_path / "2")
    assert curve(store, pairs, tmp_path / "3", epochs=2, beta=0.5, seed=43) != first


def test_the_curve_does_not_depend_on_threads(store: GraphStore, pairs: list[Pair], tmp_path: Path) -> None:
    curves = [curve(store, pairs, tmp_path / str(n), epochs=2, workers=n) for n in (0, 1, 3)]
    assert curves[0] == curves[1] == curves[2]


def test_all_epochs_are_loaded_by_the_same_threads(
    store: GraphStore, pairs: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where memory is short, CPython may wait forever for a thread that it starts."""
    load, loading = GraphStore.load, set[threading.Thread]()

    def noting_the_thread(self: GraphStore, *arguments: Any) -> GraphBatch:
        if threading.current_thread().name.startswith("loading"):
            loading.add(threading.current_thread())
        return load(self, *arguments)

    monkeypatch.setattr(GraphStore, "load", noting_the_thread)
    curve(store, pairs, tmp_path, epochs=3, workers=2)
    assert len(loading) == 2
    assert not any(thread.is_alive() for thread in loading)


def test_the_generator_of_the_caller_is_left_alone(store: GraphStore, pairs: list[Pair], tmp_path: Path) -> None:
    before = torch.get_rng_state()
    curve(store, pairs, tmp_path, epochs=1)
    assert torch.equal(torch.get_rng_state(), before)


# Going on


RUN = """
import os, signal, sys
sys.path.insert(0, {folder!r})
from tiny_collection import ENCODER, QUESTIONS, settings
from graphs.corpus.post import Pair
from graphs.stores.store import GraphStore
from mathamr.training.graph.trainer import train

def log(record):
    if record["kind"] == "step" and record["step"] == {step}:
        os.kill(os.getpid(), signal.{signal})

pairs = [Pair(f"q{{i}}", f"a{{i}}") for i in range(QUESTIONS)]
train(settings(**{changes!r}), GraphStore({store!r}), pairs, ENCODER, out={out!r}, log=log)
"""


def run_until(step: int, signal_name: str, store: GraphStore, out: Path, **changes: Any) -> Ended:
    """Train in another process, which sends itself a signal after a step."""
    code = RUN.format(
        folder=str(Path(__file__).parents[2]),
        step=step,
        signal=signal_name,
        changes=changes,
        store=str(store.path),
        out=str(out),
    )
    return start(code, out.parent, OMP_NUM_THREADS=str(torch.get_num_threads())).ended()


@pytest.mark.parametrize("step", [6, 8])
def test_going_on_after_kill_9_changes_no_bit(store: GraphStore, pairs: list[Pair], tmp_path: Path, step: int) -> None:
    """Killed between two checkpoints, and at the last step of an epoch."""
    changes = {"epochs": 3, "checkpoint_every": 3, "accumulate": 1, "beta": 0.7}
    killed = run_until(step, "SIGKILL", store, tmp_path / "killed", **changes)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    records: list[dict[str, Any]] = []
    in_one_go: list[dict[str, Any]] = []
    resumed = train(settings(**changes), store, pairs, ENCODER, out=tmp_path / "killed", log=records.append)
    whole = train(settings(**changes), store, pairs, ENCODER, out=tmp_path / "whole", log=in_one_go.append)
    assert records[0]["step"] == {6: 4, 8: 6}[step]
    assert resumed.loss_curve == whole.loss_curve
    assert resumed.best_step == whole.best_step
    assert [epoch.val_loss for epoch in resumed.epochs] == [epoch.val_loss for epoch in whole.epochs]
    terms = [[one["document_loss"] for one in log if one["kind"] == "epoch"] for log in (records, in_one_go)]
    assert terms[0] == terms[1][-len(terms[0]) :]  # also of the epoch that was cut
    assert content(tmp_path / "killed") == content(tmp_path / "whole")


def test_an_epoch_is_recorded_before_a_run_goes_on_after_it(
    store: GraphStore, pairs: list[Pair], tmp_path: Path
) -> None:
    """A process that dies at the record of an epoch repeats its end: the log has no hole."""

    class Killed(BaseException): ...

    def die(record: dict[str, Any]) -> None:
        if record["kind"] == "epoch":
            raise Killed

    with pytest.raises(Killed):
        train(settings(epochs=2), store, pairs, ENCODER, out=tmp_path, log=die)
    records: list[dict[str, Any]] = []
    train(settings(epochs=2), store, pairs, ENCODER, out=tmp_path, log=records.append)
    assert [record["epoch"] for record in records if record["kind"] == "epoch"] == [0, 1]


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """SIGINT as in a shell's foreground: in its background it is ignored, and stays so in training."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
def test_a_signal_saves_at_the_next_step_and_stops(
    store: GraphStore, pairs: list[Pair], tmp_path: Path, number: signal.Signals
) -> None:
    def stop_at_6(record: dict[str, Any]) -> None:
        if record["kind"] == "step" and record["step"] == 6:
            os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    with pytest.raises(Interrupted, match=f"stopped by {number.name} after step 6, saved") as caught:
        train(settings(), store, pairs, ENCODER, out=tmp_path / "stopped", log=stop_at_6)
    assert caught.value.step == 6
    assert signal.getsignal(number) is before
    assert checkpoint.load(tmp_path / "stopped" / "last").info.step == 6
    assert curve(store, pairs, tmp_path / "stopped") == curve(store, pairs, tmp_path / "whole")
    assert content(tmp_path / "stopped") == content(tmp_path / "whole")


def test_a_signal_in_the_last_validation_is_not_lost(
    store: GraphStore, pairs: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told_to_stop(*_: object) -> ValidationScore:
        os.kill(os.getpid(), signal.SIGTERM)
        return ValidationScore(2.0, 0.5)

    monkeypatch.setattr(Validation, "__call__", told_to_stop)
    with pytest.raises(Interrupted, match="stopped by SIGTERM after step 4, saved"):
        train(settings(epochs=1), store, pairs, ENCODER, out=tmp_path)
    assert len(train(settings(epochs=1), store, pairs, ENCODER, out=tmp_path).epochs) == 1


@pytest.mark.usefixtures("ctrl_c")
def test_a_second_ctrl_c_stops_at_once(store: GraphStore, pairs: list[Pair], tmp_path: Path) -> None:
    def stop_at_6(record: dict[str, Any]) -> None:
        if record["kind"] == "step" and record["step"] == 6:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(settings(), store, pairs, ENCODER, out=tmp_path / "stopped", log=stop_at_6)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert checkpoint.load(tmp_path / "stopped" / "last").info.step == 4  # the end of the first epoch
    assert curve(store, pairs, tmp_path / "stopped") == curve(store, pairs, tmp_path / "whole")


def test_a_signal_that_is_ignored_stays_so(store: GraphStore, pairs: list[Pair], tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        ended = train(settings(epochs=1), store, pairs, ENCODER, out=tmp_path, log=lambda _: signal.raise_signal(2))
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(ended.epochs) == 1


def test_training_runs_outside_the_main_thread(store: GraphStore, pairs: list[Pair], tmp_path: Path) -> None:
    found: list[tuple[float, ...]] = []
    thread = threading.Thread(target=lambda: found.append(curve(store, pairs, tmp_path, epochs=1)))
    thread.start()
    thread.join()
    assert len(found[0]) == 4


def test_a_finished_run_is_not_run_again(store: GraphStore, pairs: list[Pair], tmp_path: Path) -> None:
    first = train(settings(epochs=2), store, pairs, ENCODER, out=tmp_path)
    records: list[dict[str, Any]] = []
    done: list[int] = []
    again = train(settings(epochs=2), store, pairs, ENCODER, out=tmp_path, log=records.append, progress=done.append)
    assert [record["kind"] for record in records] == ["start"]
    assert done == []
    assert (again.loss_curve, again.epochs, again.best_step) == (first.loss_curve, first.epochs, first.best_step)
    anew = train(settings(epochs=2), store, pairs, ENCODER, out=tmp_path, log=records.append, resume="never")
    assert anew.loss_curve == first.loss_curve
    assert len(records) == 2 + 8 + 2


def test_a_run_goes_on_with_other_threads_but_not_with_other_settings(
    store: GraphStore, pairs: list[Pair], tmp_path: Path
) -> None:
    train(settings(epochs=1), store, pairs, ENCODER, out=tmp_path)
    train(settings(epochs=1, workers=0, checkpoint_every=2), store, pairs, ENCODER, out=tmp_path)
    with pytest.raises(TrainingError, match=r"last: .*train\.batch_size=8 then, 4 now; train\.seed=42 then, 1 now\)"):
        train(settings(epochs=1, batch_size=4, seed=1), store, pairs, ENCODER, out=tmp_path)
    with pytest.raises(TrainingError, match=r"model\.num_layers=2 then, 3 now"):
        train(settings(epochs=1), store, pairs, encoder_config(num_layers=3), out=tmp_path)
    with pytest.raises(TrainingError, match="pairs, negatives and visual ids"):
        train(settings(epochs=1), store, pairs[:-1], ENCODER, out=tmp_path)


def test_a_checkpoint_of_other_graphs_is_refused(
    store: GraphStore, new_store: Callable[..., GraphStore], pairs: list[Pair], tmp_path: Path
) -> None:
    train(settings(epochs=1), store, pairs, ENCODER, out=tmp_path / "out")
    smaller = new_store(tmp_path / "smaller.db", size=40)
    with pytest.raises(TrainingError, match=f"vocabulary {store.vocabulary.hash}, not with {smaller.vocabulary.hash}"):
        train(settings(epochs=1), smaller, pairs, ENCODER, out=tmp_path / "out")
    circular = new_store(tmp_path / "circular.db", VirtualNodeSpec(connectivity="circular"))
    with pytest.raises(TrainingError, match=f"configuration {store.config_hash}, not with {circular.config_hash}"):
        train(settings(epochs=1), circular, pairs, ENCODER, out=tmp_path / "out")


def test_the_best_checkpoint_becomes_an_encoder(store: GraphStore, pairs: list[Pair], tmp_path: Path) -> None:
    result = train(settings(epochs=1), store, pairs, ENCODER, out=tmp_path)
    encoder = checkpoint.load_encoder(result.best, config_hash=store.config_hash)
    assert not encoder.training
    vectors = encoder(store.load(["q0", "a0"])).vectors
    assert torch.allclose(vectors.norm(dim=1), torch.ones(len(vectors)))


# Stopping early


def test_one_held_out_question_selects_the_last_epoch(store: GraphStore, pairs: list[Pair], tmp_path: Path) -> None:
    """Its loss is 0 in every epoch, because it has no negatives."""
    answered = [pair for pair in pairs if pair.question_id in {f"q{i}" for i in range(5)}]
    config, records = settings(epochs=6, patience=2, batch_size=2, validation_fraction=0.2), list[dict[str, Any]]()
    result = train(config, store, answered, ENCODER, out=tmp_path, log=records.append)
    assert records[0]["warning"].startswith("1 question is held out")
    assert [epoch.val_loss for epoch in result.epochs] == [0.0] * 6
    assert result.best_step == result.epochs[-1].step


def test_training_stops_when_validation_no_longer_improves(
    store: GraphStore, pairs: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = iter([3.0, 2.0, 2.5, 2.0, 1.0])
    monkeypatch.setattr(Validation, "__call__", lambda *_: ValidationScore(next(losses), 0.5))
    result = train(settings(epochs=9, patience=2), store, pairs, ENCODER, out=tmp_path)
    assert result.stopped_early
    assert len(result.epochs) == 4
    assert (result.best_step, result.best_val_loss) == (8, 2.0)
    assert checkpoint.load(result.best).info.step == 8
    assert checkpoint.load(tmp_path / "last").info.step == 16
    assert len(train(settings(epochs=9, patience=2), store, pairs, ENCODER, out=tmp_path).epochs) == 4


# What cannot be trained on


def test_pairs_without_graphs_are_left_out_and_listed(store: GraphStore, pairs: list[Pair], tmp_path: Path) -> None:
    lost = [Pair("q1", "a999"), Pair("q998", "a2"), Pair("q998", "a999")]
    result = train(settings(epochs=1), store, pairs + lost, ENCODER, out=tmp_path)
    assert (result.left_out, result.missing) == (3, ("a999", "q998"))
    assert result.train_pairs + result.validation_pairs == len(pairs)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "list of training pairs is empty"),
        ([Pair("x", "y")], "none of the 1 pairs has graphs .* post x"),
        (
            [Pair("q1", "a1"), Pair("q1", "a2")],
            r"answered questions: 1; .*=0\.25 holds out 0 and leaves 1 .*; give at least 3 answered questions$",
        ),
    ],
)
def test_pairs_that_cannot_be_trained_on(store: GraphStore, pairs: list[Pair], message: str, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=message):
        train(settings(), store, pairs, ENCODER, out=tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"batch_size": 37},
            "batch_size=37 is larger than the training set of 36 pairs; use train.batch_size=12 or less, or more pairs",
        ),
        ({"batch_size": 1}, "batch_size=1 must be at least 2"),
        ({"accumulate": 5}, "accumulate=5 batches for a step, but an epoch has 4"),
        ({"min_learning_rate": 1.0}, "min_learning_rate=1.0 must lie between 0 and train.learning_rate=0.01"),
        ({"node_mask": 1.0}, "node_mask=1.0"),
        ({"validation_fraction": 0.0}, "validation_fraction=0.0"),
        ({"grad_clip": float("nan")}, "grad_clip=nan"),
        ({"weight_decay": float("inf")}, "weight_decay=inf must be at least 0 and finite"),
        ({"formula_weight": float("nan")}, "formula_weight=nan must be at least 0 and finite"),
        ({"precision": "fp8"}, "precision=fp8 is not one of fp32, bf16"),
        ({"device": "abacus"}, "device=abacus"),
        ({"negatives": 2}, "train.negatives=2 hard negatives for each question, but none are given"),
    ],
)
def test_settings_that_contradict(
    store: GraphStore, pairs: list[Pair], changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        train(settings(**changes), store, pairs, ENCODER, out=tmp_path)


def test_document_vectors_are_not_trained_where_there_are_none(
    new_store: Callable[..., GraphStore], pairs: list[Pair], tmp_path: Path
) -> None:
    store = new_store(tmp_path / "none.db", VirtualNodeSpec(structure="none"))
    with pytest.raises(ConfigError, match="structure 'none' have no document vector"):
        train(settings(beta=0.0), store, pairs, ENCODER, out=tmp_path / "out")
    assert curve(store, pairs, tmp_path / "out", epochs=1)


# What breaks on the way


@pytest.mark.parametrize("rate", [1e4, 1e30])
def test_what_is_not_finite_stops_the_run_and_reaches_no_checkpoint(
    store: GraphStore, pairs: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rate: float
) -> None:
    """From step 3 on the learning rate drives the temperature, or the weights, out of all bounds."""
    schedule = trainer.cosine
    monkeypatch.setattr(trainer, "cosine", lambda step, **kw: rate if step >= 2 else schedule(step, **kw))
    with pytest.raises(TrainingError, match=r"epoch 1, step [34]: .*(finite|range).*last holds step [23]\)"):
        train(settings(checkpoint_every=1), store, pairs, ENCODER, out=tmp_path)
    assert all(torch.isfinite(weight).all() for weight in checkpoint.load(tmp_path / "last").weights.values())


def test_a_full_disk_stops_the_run_and_leaves_the_last_checkpoint(
    store: GraphStore, pairs: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = checkpoint._write_synced

    def fills_up(record: dict[str, Any]) -> None:
        if record["kind"] == "step" and record["step"] == 5:
            monkeypatch.setattr(checkpoint, "_write_synced", full)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(TrainingError, match=r"No space left on device; the checkpoint of step 4 is intact"):
        train(settings(checkpoint_every=2), store, pairs, ENCODER, out=tmp_path, log=fills_up)
    monkeypatch.setattr(checkpoint, "_write_synced", write)
    assert checkpoint.load(tmp_path / "last").info.step == 4
    assert curve(store, pairs, tmp_path, checkpoint_every=2) == curve(store, pairs, tmp_path / "whole")


@pytest.mark.parametrize(("training", "message"), [(True, "train.node_budget=100000"), (False, "max_nodes=20000")])
def test_too_little_memory_is_a_message_with_the_way_out(
    store: GraphStore,
    pairs: list[Pair],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    training: bool,
    message: str,
) -> None:
    """In a step of the second epoch, and in its validation."""
    forward = Encoder.forward

    def runs_out(self: Encoder, batch: GraphBatch) -> VectorSets:
        if self.training is training and checkpoint.exists(tmp_path / "last"):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")
        return forward(self, batch)

    monkeypatch.setattr(Encoder, "forward", runs_out)
    with pytest.raises(
        TrainingError, match=rf"epoch 2, step \d: out of memory on cpu .*lower {message}.*last holds step 4"
    ):
        train(settings(), store, pairs, ENCODER, out=tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"symmetric": True},
        {"beta": 0.0},
        {"beta": 0.3, "normalize": False},
        {"accumulate": 2},
        {"precision": "bf16"},
        {"node_budget": 40},
        {"formula_weight": 0.1, "formula_view_weight": 0.1},
    ],
)
def test_every_objective_trains(store: GraphStore, pairs: list[Pair], tmp_path: Path, changes: dict[str, Any]) -> None:
    visual_ids = {f"{kind}{i}": [f"v{i % 16}"] for i in range(QUESTIONS) for kind in "qa"}
    result = train(settings(epochs=6, **changes), store, pairs, ENCODER, out=tmp_path, visual_ids=visual_ids)
    assert result.epochs[-1].train_loss < 0.8 * result.loss_curve[1]
    assert len(pairs) == QUESTIONS
