"""Worker of graphs/amr/transition.py: runs transition-amr-parser in another environment.

    python graphs/amr/transition_worker.py --model doc-sen-conll-amr-seed42

It imports nothing of this project and supports Python 3.8, because the parser needs an old torch. It speaks JSON lines:
first it writes ``{"ready": true, "version": ...}``. Then it reads ``{"post_id", "chunk", "sentences"}`` lines, up to an
empty line that ends a batch, and writes for each ``{"post_id", "chunk", "penman"}`` or ``{"post_id", "chunk",
"error"}``, in order. A batch that fails as a whole gets one ``{"batch_error": ...}``. The parser's own output goes to
standard error. The worker ends when its input ends.
"""

import argparse
import json
import os
import sys


def main():
    """Load the model, then answer batches."""
    arguments = argparse.ArgumentParser(description="AMR by transition-amr-parser over JSON lines")
    arguments.add_argument("--model", default="doc-sen-conll-amr-seed42")
    options = arguments.parse_args()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # the parser and its libraries print

    from transition_amr_parser.parse import AMRParser  # type: ignore[import-not-found]

    parser = AMRParser.from_pretrained(options.model)
    _write(answers, {"ready": True, "version": _version()})
    batch = []
    for line in sys.stdin:
        if line.strip():
            batch.append(json.loads(line))
        elif batch:
            _answer(answers, parser, batch)
            batch = []


def _answer(answers, parser, batch):
    try:
        documents = [[parser.tokenize(sentence)[0] for sentence in chunk["sentences"]] for chunk in batch]
        annotations, _ = parser.parse_docs(documents)
    except Exception as error:  # noqa: BLE001 - whatever the parser raises is the answer
        _write(answers, {"batch_error": "%s: %s" % (type(error).__name__, error)})  # noqa: UP031
        return
    for chunk, text in zip(batch, annotations):  # noqa: B905 - Python 3.8
        _write(answers, {"post_id": chunk["post_id"], "chunk": chunk["chunk"], "penman": text})


def _write(answers, record):
    answers.write(json.dumps(record, ensure_ascii=False) + "\n")
    answers.flush()


def _version():
    from importlib import metadata

    try:
        return metadata.version("transition-neural-parser")
    except metadata.PackageNotFoundError:
        return "unknown"


if __name__ == "__main__":
    main()
