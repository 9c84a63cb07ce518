"""Train one model from a preprocessed.db and a file of pairs, and print a summary.

    mathamr train --tensors preprocessed.db --pairs pairs.tsv --out model
    mathamr train --tensors preprocessed.db --pairs pairs.tsv --out model train=thesis train.epochs=3
    mathamr train --tensors preprocessed.db --pairs pairs.tsv --out circular --connectivity circular
    torchrun --nproc-per-node 4 -m experiments.cli train --tensors preprocessed.db --pairs pairs.tsv --out model

mathamr build tensors makes both files from a collection. The file of pairs has two columns separated by a tab: question
id and answer id. The first line may name them (``query_id``, ``document_id``). ``pairs.positives`` beside it names the
``train.positives`` of its pairs, which decides what is held out together; without it, give that setting.

The file of hard negatives (``--negatives``) has question ids and ids of posts that do not answer them;
``train.negatives`` is the number drawn for each question. ``train.negative_source=model`` needs no file. Any key of the
groups ``model`` and ``train`` of ``conf/`` can be set. ``model/best`` is the checkpoint of the lowest validation loss,
``model/log.jsonl`` has a record of every step. The same command resumes an interrupted run. A second command that
trains into the same folder is refused.

Exit codes: 0 trained; 2 an error, with a message; 75 stopped by SIGTERM, SIGUSR1 or Ctrl-C, saved: run it again to
resume; 130 stopped by a second Ctrl-C, which does not wait: the next run resumes from the last checkpoint.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from experiments.command import command
from experiments.options import parser_of


@command
def main(arguments: Sequence[str] | None = None) -> str:
    parser = parser_of(__doc__)
    parser.add_argument("--tensors", type=Path, required=True, help="preprocessed.db")
    parser.add_argument("--pairs", type=Path, required=True, help="TSV of question ids and answer ids")
    default = "default: that of the file"
    parser.add_argument("--structure", help=f"virtual nodes: full, global or none; {default}")
    parser.add_argument("--connectivity", help=f"their edges, as graph.connectivity; {default}")
    parser.add_argument("--negatives", type=Path, help="hard negatives: TSV of question ids and post ids")
    parser.add_argument("--out", type=Path, required=True, help="folder of the checkpoints")
    parser.add_argument("--resume", choices=("auto", "never"), default="auto", help="never: start anew")
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="e.g. train.epochs=3 model.hidden_dim=128")
    given = parser.parse_args(arguments)

    from experiments.configuration.composition import read_settings
    from graphs.stores.store import GraphStore
    from mathamr.stages.console import Console
    from mathamr.stages.learning.graph_model import TrainingData, by_question, summary, train_graph_model
    from mathamr.stages.learning.reporting import JsonLines, only_trainer
    from mathamr.stages.learning.training_files import positives_file
    from mathamr.training.distributed import missing_gpu
    from mathamr.training.pairs import read_pairs

    encoder, config = read_settings(given.settings)
    graphs = GraphStore(given.tensors)
    virtual_nodes = {"structure": given.structure, "connectivity": given.connectivity}
    spec = replace(graphs.spec, **{name: value for name, value in virtual_nodes.items() if value is not None})
    data = TrainingData(
        GraphStore(given.tensors, spec),
        read_pairs(given.pairs),
        None if given.negatives is None else by_question(read_pairs(given.negatives)),
    )
    log = JsonLines(given.out / "log.jsonl")
    console = Console(quiet=os.environ.get("RANK", "0") != "0")
    if (recorded := positives_file(given.pairs)).exists():
        positives = recorded.read_text(encoding="utf-8", errors="replace").strip()
        if positives != config.positives:
            console.say(f"  train.positives={positives}, as {recorded} says of {given.pairs}")
        config = replace(config, positives=positives)
    if warning := missing_gpu(config.device):
        console.say(warning)
    with only_trainer(given.out):
        return summary(*train_graph_model(data, config, encoder, given.out, console, log=log, resume=given.resume))


if __name__ == "__main__":
    sys.exit(main())
