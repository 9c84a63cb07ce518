"""Cost of a whole training step, and the share of it spent waiting for data.

    python scripts/bench.py train_step                          # 2,000 generated graphs of the thesis's sizes
    python scripts/bench.py train_step --store both-full.db train.workers=2 model.vn_aggregation=attention

A step is: loading and augmenting 64 graphs (32 pairs), encoder, gather, loss, backward, clipping, AdamW. Settings are
those of conf/model and conf/train (`train=thesis` ...), and arguments change them. Pairs are drawn at random, since
they cost the same as true ones. `waited_share` is the share of the step without a batch; `load_ms` is the time to
prepare a batch on an idle machine. AdamW is also timed alone, fused (as in training) and not, on the same gradients.
Times are medians.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from contextlib import closing

import numpy as np
import torch

from experiments.configuration.composition import read_settings
from graphs.corpus.post import Pair
from graphs.stores.store import GraphStore
from mathamr.evaluation.efficiency import Stopwatch, peak_device_memory, reset_peak_gpu_memory
from mathamr.model.config import EncoderConfig
from mathamr.training.config import TrainConfig
from mathamr.training.distributed import Ranks, ranks
from mathamr.training.graph.learner import Learner
from mathamr.training.graph.loading import TrainingBatches
from mathamr.training.pairs import split_pairs
from scripts.benchmarks.sample_graphs import open_sample, parser

WARM_UP = 2  # steps; the first allocate


def main() -> dict[str, float]:
    """Run some steps, then time their parts alone; print and return each number."""
    arguments = parser(__doc__)
    arguments.add_argument("--steps", type=int, default=20)
    arguments.add_argument("overrides", nargs="*", help="settings, e.g. train.workers=2")
    options = arguments.parse_args()
    steps: int = options.steps
    encoder_config, config = read_settings(options.overrides)
    with open_sample(options.store, options.num_graphs) as store, ranks(config.device) as world:
        post_ids = np.random.default_rng(0).permutation(store.post_ids()).tolist()
        pairs = [Pair(*two) for two in zip(post_ids[::2], post_ids[1::2], strict=False)]
        batches, learner = set_up(store, pairs, encoder_config, config, world)
        reset_peak_gpu_memory(world.device)
        total: list[float] = []
        waited: list[float] = []
        graphs = nodes = edges = 0
        for epoch in range(-(-(steps + WARM_UP) // batches.curriculum.batches(0))):
            count = min(batches.curriculum.batches(0), steps + WARM_UP - len(total))
            with closing(batches.epoch(epoch, 0, count)) as prepared:
                for _ in range(count):
                    with Stopwatch(world.device) as watch:
                        batch = next(prepared)
                        waited.append(watch.seconds)
                        learner.step([batch], config.learning_rate)
                    total.append(watch.seconds)
                    graphs += batch.num_graphs * (len(total) > WARM_UP)
                    nodes += sum(chunk.num_nodes for chunk in batch.chunks)
                    edges += sum(chunk.num_edges for chunk in batch.chunks)
        batches.close()
        memory = peak_device_memory(world.device)

        encoder, device = learner.encoder, world.device
        chunks = batch.to(device).chunks
        parameters = [p.detach().clone().requires_grad_() for p in encoder.parameters()]
        for copy, parameter in zip(parameters, encoder.parameters(), strict=True):
            copy.grad = parameter.grad
        fused, plain = (torch.optim.AdamW(parameters, fused=choice) for choice in (True, False))
        parts: dict[str, Callable[[], object]] = {
            "load_ms": lambda: batches.batch(batch.pairs, 0, 0),
            "encode_forward_ms": lambda: [encoder(chunk) for chunk in chunks],
            "adamw_fused_ms": fused.step,
            "adamw_plain_ms": plain.step,
        }
        times = {name: _median_ms(part, device) for name, part in parts.items()}
    seconds = total[WARM_UP:]
    result = {
        "step_ms": 1_000 * statistics.median(seconds),
        "waited_ms": 1_000 * statistics.median(waited[WARM_UP:]),
        "waited_share": sum(waited[WARM_UP:]) / sum(seconds),
        "graphs_per_second": graphs / sum(seconds),
        "nodes_per_step": nodes / len(total),
        "edges_per_step": edges / len(total),
        **times,
        "adamw_speedup": times["adamw_plain_ms"] / times["adamw_fused_ms"],
        "peak_memory_mib": memory / 2**20,
        "parameters": sum(p.numel() for p in encoder.parameters()),
        "steps": len(seconds),
    }
    for name, value in result.items():
        print(f"{name:22} {value:>12,.4g}" if value < 1_000 else f"{name:22} {value:>12,.0f}")
    return result


def set_up(
    store: GraphStore, pairs: Iterable[Pair], encoder_config: EncoderConfig, config: TrainConfig, world: Ranks
) -> tuple[TrainingBatches, Learner]:
    """Return batches of the training pairs, and their learner."""
    split = split_pairs(pairs, set(store.post_ids()), validation_fraction=config.validation_fraction)
    return TrainingBatches(store, split, config, world), Learner(config, encoder_config, store, world)


def _median_ms(part: Callable[[], object], device: torch.device) -> float:
    part()
    times = []
    for _ in range(7):
        with Stopwatch(device) as watch:
            part()
        times.append(1_000 * watch.seconds)
    return statistics.median(times)
