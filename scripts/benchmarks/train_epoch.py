"""Duration of a training epoch, by batch size: pairs per second, projected to the thesis's numbers of pairs.

    python scripts/bench.py train_epoch --store both-full.db --batch-sizes 32,256,1024 --pairs 2048
    python scripts/bench.py train_epoch model=thesis_benchmark train=thesis_benchmark --batch-sizes 16

Each batch size trains on the same number of pairs, as the trainer does: loading, augmentation, encoder, loss, backward,
AdamW. Settings are those of conf/model and conf/train, and arguments change them. A batch with more nodes than
train.node_budget is encoded twice, in chunks. Pairs are drawn at random, since they cost the same as true ones. An
epoch has 45,000 pairs in the experiments of the thesis (Table 4.8) and 491,000 in its benchmark run (Table 4.20), not
counting validation. `cpu_s` is the processor time of a pair, all threads together, and `epoch_45000_cpu_s` that of an
epoch. On a CPU, the load of the machine hardly changes them, unlike `pairs_per_s`.
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace

import numpy as np

from experiments.configuration.composition import read_settings
from graphs.corpus.post import Pair
from graphs.errors import ConfigError
from graphs.stores.store import GraphStore
from mathamr.evaluation.efficiency import Stopwatch, peak_device_memory, reset_peak_gpu_memory, reset_peak_memory
from mathamr.model.config import EncoderConfig
from mathamr.training.config import TrainConfig
from mathamr.training.distributed import ranks
from scripts.benchmarks.sample_graphs import open_sample, parser
from scripts.benchmarks.train_step import set_up

EPOCHS = (45_000, 491_000)  # pairs; thesis 4.3.1 and 4.4.2


def _epoch(store: GraphStore, encoder_config: EncoderConfig, config: TrainConfig, pairs: int) -> dict[str, float]:
    post_ids = store.post_ids()
    rng = np.random.default_rng(0)
    half = len(post_ids) // 2
    wanted = -(-max(pairs, config.batch_size) // config.batch_size) + 1  # batches, one of them for warming up
    least = int(wanted * config.batch_size / (1 - config.validation_fraction)) + 2
    drawn = [Pair(post_ids[i], post_ids[half + j]) for i, j in rng.integers(half, size=(4 * least, 2))]
    distinct = list(dict.fromkeys(drawn))
    with ranks(config.device) as world:
        batches, learner = set_up(store, distinct, encoder_config, config, world)
        if batches.curriculum.batches(0) < wanted:
            raise ConfigError(
                f"{len(post_ids)} graphs give {batches.curriculum.batches(0)} batches of {config.batch_size} different "
                f"pairs, fewer than the {wanted} needed; give a larger --num-graphs or --store, or fewer --pairs"
            )
        reset_peak_memory()
        reset_peak_gpu_memory(world.device)
        chunks = 0
        with closing(batches.epoch(1, 0, 1)) as prepared:
            learner.step([next(prepared)], config.learning_rate)
        processor = time.process_time()
        # Threads prepare batches ahead, from the start of the timed part on.
        with Stopwatch(world.device) as watch, closing(batches.epoch(0, 0, wanted - 1)) as prepared:
            for batch in prepared:
                learner.step([batch], config.learning_rate)
                chunks += len(batch.chunks)
        processor = time.process_time() - processor
        batches.close()
        seen = (wanted - 1) * config.batch_size
        rate = seen / watch.seconds
        return {
            "batch_size": config.batch_size,
            "pairs": seen,
            "pairs_per_s": rate,
            "graphs_per_s": 2 * rate,
            "cpu_s": processor / seen,
            "chunks": chunks / (wanted - 1),
            **{f"epoch_{size}_s": size / rate for size in EPOCHS},
            **{f"epoch_{size}_cpu_s": size * processor / seen for size in EPOCHS},
            "peak_memory_mib": peak_device_memory(world.device) / 2**20,
            "parameters": learner.parameter_counts()["total"],
        }


def main() -> dict[str, list[dict[str, float]]]:
    """Train with each batch size, after a first batch that does not count; print a row for each, and return all."""
    arguments = parser(__doc__)
    arguments.add_argument("--pairs", type=int, default=1024, help="pairs for each batch size, at least one batch")
    arguments.add_argument("--batch-sizes", default="32", help="batch sizes, separated by commas")
    arguments.add_argument("overrides", nargs="*", help="settings, e.g. train.workers=2")
    options = arguments.parse_intermixed_args()
    encoder_config, config = read_settings(options.overrides)
    with open_sample(options.store, options.num_graphs) as store:
        rows = [
            _epoch(store, encoder_config, replace(config, batch_size=int(size)), options.pairs)
            for size in options.batch_sizes.split(",")
        ]
    for row in rows:
        cells = (f"{name} {value:,.4g}" if value < 1_000 else f"{name} {value:,.0f}" for name, value in row.items())
        print("  ".join(cells))
    return {"rows": rows}
