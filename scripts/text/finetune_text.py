"""Fine-tune a text encoder on a file of pairs, and print a summary.

    mathamr text finetune --pairs pairs.jsonl --out model
    mathamr text finetune --pairs pairs.jsonl --out model text=thesis text.epochs=1
    mathamr text finetune --pairs pairs.jsonl --out model text.pretraining_epochs=3 --texts texts.txt
    torchrun --nproc-per-node 4 -m experiments.cli text finetune --pairs pairs.jsonl --out model

mathamr text pairs makes the file of pairs. Any key of the group ``text`` of ``conf/`` can be set. ``model/best`` is the
encoder of the lowest validation loss, a folder of sentence-transformers; ``model/log.jsonl`` has a record for every
step. With ``text.pretraining_epochs`` the encoder is first pretrained on ``--texts`` (one per line) or on the documents
of the pairs, and saved as ``model/pretrained``. The encoder ``tiny`` is made from the pairs' texts, in
``model/tiny-RANK``. The same command resumes an interrupted run.

Exit codes: 0 trained; 2 an error, with a message; 75 stopped by SIGTERM, SIGUSR1 or Ctrl-C, saved: run the command
again to resume; 130 stopped by a second Ctrl-C, which does not wait.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.command import command
from experiments.options import parser_of


@command
def main(arguments: Sequence[str] | None = None) -> str:
    parser = parser_of(__doc__)
    parser.add_argument("--pairs", type=Path, required=True, help="JSON lines of mathamr text pairs")
    parser.add_argument("--validation", type=Path, help="other pairs that select the best epoch; default: a part")
    parser.add_argument("--texts", type=Path, help="texts to pretrain on, one a line; default: the pairs' documents")
    parser.add_argument("--out", type=Path, required=True, help="folder of the encoder")
    parser.add_argument("--seed", type=int, default=42, help="seed of order, negatives and dropout")
    parser.add_argument("--resume", choices=("auto", "never"), default="auto", help="never: start anew")
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="e.g. text=thesis text.epochs=3")
    given = parser.parse_args(arguments)

    from experiments.configuration.composition import read_groups
    from mathamr.stages.console import Console
    from mathamr.stages.learning.reporting import only_trainer
    from mathamr.stages.learning.text_encoder import summary, train_text_encoder
    from mathamr.text.config import TextConfig
    from mathamr.text.pairs import PairFile

    [settings] = read_groups(given.settings, "text")
    pairs, validation = PairFile(given.pairs), None if given.validation is None else PairFile(given.validation)
    with only_trainer(given.out):
        trained = train_text_encoder(
            TextConfig(**settings),
            pairs,
            given.out,
            Console(),
            seed=given.seed,
            validation=validation,
            texts=given.texts,
            resume=given.resume,
        )
    return summary(trained)


if __name__ == "__main__":
    sys.exit(main())
