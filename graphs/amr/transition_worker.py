"""Worker of graphs/amr/transition.py: runs transition-amr-parser in another environment.

    python graphs/amr/transition_worker.py --model doc-sen-conll-amr-seed42

It imports nothing of this project and supports Python 3.8, because the parser needs an old torch. It speaks JSON lines:
first it writes ``{"ready": true, "version": ...}``. Then it reads ``{"post_id", "chunk", "sentences"}`` lines, up to an
empty line that ends a batch, and writes for each ``{"post_id", "chunk", "penman", "tokens"}`` or ``{"post_id", "chunk",
"error"}``, in order; ``tokens`` is the number of tokens sent to the parser. A batch that fails as a whole gets one
``{"batch_error": ...}``, with ``"kind": "merge"`` if the parser says that it did not merge the windows of a document. A
worker that cannot parse on this machine's GPU writes ``{"start_error": ...}`` first. The parser's own output goes to
standard error. The worker ends when its input ends.
"""

import argparse
import json
import os
import sys

_NOT_MERGED = "did not complete merge"  # printed by the parser, which then returns the graph of a part


def main():
    """Load the model, then answer batches."""
    arguments = argparse.ArgumentParser(description="AMR by transition-amr-parser over JSON lines")
    arguments.add_argument("--model", default="doc-sen-conll-amr-seed42")
    options = arguments.parse_args()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # the parser and its libraries print

    import torch
    from transition_amr_parser.parse import AMRParser  # type: ignore[import-not-found]

    problem = gpu_problem(torch)
    if problem:
        _write(answers, {"start_error": problem})
        return
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
        with _Heard() as heard:
            annotations, _ = parser.parse_docs(documents)
    except Exception as error:  # noqa: BLE001 - whatever the parser raises is the answer
        _write(answers, {"batch_error": "%s: %s" % (type(error).__name__, error)})  # noqa: UP031
        return
    if heard.not_merged:
        _write(answers, {"batch_error": "the parser did not merge its windows", "kind": "merge"})
        return
    for chunk, document, text in zip(batch, documents, annotations):  # noqa: B905 - Python 3.8
        tokens = sum(len(sentence) for sentence in document)
        _write(answers, {"post_id": chunk["post_id"], "chunk": chunk["chunk"], "penman": text, "tokens": tokens})


class _Heard:
    """Output filter that notes whether the parser says that it did not merge a document."""

    def __init__(self):
        self.not_merged = False
        self._tail = ""

    def __enter__(self):
        self._out, self._err = sys.stdout, sys.stderr
        sys.stdout = sys.stderr = self
        return self

    def __exit__(self, *_):
        sys.stdout, sys.stderr = self._out, self._err

    def write(self, text):
        """Pass text on, and search it for the message."""
        self._tail = (self._tail + text)[-4000:]
        self.not_merged = self.not_merged or _NOT_MERGED in self._tail
        return self._err.write(text)

    def __getattr__(self, name):
        return getattr(self._err, name)


def gpu_problem(torch):
    """Return what is wrong with ``torch`` on this machine's first GPU, or "" if nothing is.

    A torch that is older than the GPU has no code for it, and fails at the first operation, after minutes of loading.
    """
    if not torch.cuda.is_available():
        return ""
    major, minor = torch.cuda.get_device_capability(0)
    built = torch.cuda.get_arch_list()
    for name in built:
        kind, _, number = name.partition("_")
        digits = "".join(letter for letter in number if letter.isdigit())
        has = (int(digits[:-1] or 0), int(digits[-1:] or 0))
        # Machine code runs on GPUs of its generation; the portable form, "compute", on all later ones.
        if (kind == "sm" and has[0] == major and has[1] <= minor) or (kind == "compute" and has <= (major, minor)):
            return ""
    names = ", ".join(built) or "none"
    return (
        f"torch {torch.__version__} has no code for {torch.cuda.get_device_name(0)} "
        f"(sm_{major}{minor}; it has {names}): install a torch for this GPU, or parse on the CPU with "
        "CUDA_VISIBLE_DEVICES= (empty)"
    )


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
