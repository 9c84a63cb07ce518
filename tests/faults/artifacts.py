"""Kinds of files that the project writes, and what guards each against damage.

A file of no kind makes ``test_artifacts.py`` fail: whoever adds one says here what happens when a bit of it flips.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from pathlib import PurePath


class Guard(Enum):
    """What notices that a file is not the one that was written."""

    DIGEST = "a digest of the whole content: every flipped bit is a message, or the file is made anew"
    DATABASE = "digests of its trees, and SQLite's own format; a changed id is not seen"
    ROWS = "digests of rows, and SQLite's own format: a changed row is a message; a row that got lost is not seen"
    ENGINE = "the checks of the engine that wrote it; what is explained of a result has a digest elsewhere"
    SYNTAX = "its syntax: a cut file is a message, or its job runs again; a changed digit is not seen"
    SHOWN = "nothing: it is for people, and no program of the project reads it"
    LOCK = "nothing: it is empty, and its content does not matter"


# The first pattern that fits counts.
KINDS: Mapping[str, Guard] = {
    # an index, and vectors kept beside a model
    r"(.*/)?index\.json": Guard.DIGEST,
    r"(.*/)?data-[0-9a-f]{32}/(vectors|post_ids|sizes)\.npy": Guard.DIGEST,
    r"(.*/)?data-[0-9a-f]{32}/structure/(arrays\.npz|formulas\.tsv|names\.json)": Guard.DIGEST,
    r"(.*/)?data-[0-9a-f]{32}/(vocabulary\.json|posts\.db)": Guard.DIGEST,
    r"(.*/)?data-[0-9a-f]{32}/formulas/formulas\.tsv": Guard.DIGEST,
    r"(.*/)?encoding(-\d+)?/\d{5}\.safetensors": Guard.DIGEST,
    # a checkpoint
    r"(.*/)?(best|last|model\d?)/(checkpoint\.json|model\.safetensors|state\.(json|safetensors))": Guard.DIGEST,
    # a model for others, and a collection for others
    r"(.*/)?pretrained/(model\.safetensors|checkpoint\.json|vocabulary\.json)": Guard.DIGEST,
    r"(.*/)?pretrained/mathamr\.json": Guard.SYNTAX,  # it has the digests; the parser's name has none
    r"(.*/)?pretrained/README\.md": Guard.SHOWN,
    r"(.*/)?beir/((corpus|queries)\.jsonl|qrels/[^/]+\.tsv)": Guard.SYNTAX,
    r"(.*/)?label_vectors-[0-9a-f]{16}\.safetensors": Guard.DIGEST,
    # a text encoder, which encoder.json has the digests of; it may begin with tiny-encoder/
    r"(.*/)?(models|pretrained)/[0-9a-f]{16}/best/encoder\.json": Guard.SYNTAX,
    r"(.*/)?(models|pretrained)/[0-9a-f]{16}/best/.+": Guard.DIGEST,
    r"(.*/)?tiny-encoder/.+": Guard.SYNTAX,
    # databases
    r"(.*/)?(post_headers|collection|topic-graphs|posts|graphs)(-[^/]+)?\.db": Guard.ROWS,
    r"(.*/)?(preprocessed|searched|topics)(-[^/]+)?\.db": Guard.ROWS,
    r"(.*/)?sentence_vectors/[^/]+\.db": Guard.ROWS,
    r"(.*/)?formulas(-[^/]+)?\.db": Guard.DATABASE,
    r"(.*/)?data-[0-9a-f]{32}/shard/.+": Guard.ENGINE,  # the embedded Qdrant
    # an experiment
    r"(.*/)?jobs/[^/]+/(result\.json|(run|per_topic)(-[^/]+)?\.(tsv|csv))": Guard.DIGEST,
    r"(.*/)?(experiment|failed|rankings|trained|encoded|encoded\.digests)\.json": Guard.SYNTAX,
    r"(.*/)?(heat_map|examples|examples-task2|geometry|weighting)\.json": Guard.SYNTAX,
    r"(.*/)?(counts|needed|known|missing|judged|topic)-[^/]+\.json": Guard.SYNTAX,
    r"(.*/)?[^/]+\.(content|topics|needed|absent|without)\.json": Guard.SYNTAX,
    r"(.*/)?[A-Za-z0-9_]+-task[12]-[A-Za-z0-9_.+]+-(auto|manual)-(both|math|text)-[PA]\.tsv": Guard.SYNTAX,
    r"(.*/)?leaks\.tsv": Guard.SHOWN,
    r"(.*/)?log\.jsonl": Guard.SYNTAX,
    r"(.*/)?(key|source)": Guard.SYNTAX,
    r"(.*/)?[^/]+\.done": Guard.SYNTAX,
    # what a person gives or reads
    r"(threads/)?((posts|topics2?)\.jsonl|qrels\.tsv|pairs\.tsv)": Guard.SYNTAX,
    r"(.*/)?(results\.csv|report\.(md|html)|failures\.md|traceback\.txt|[^/]+\.failures\.tsv)": Guard.SHOWN,
    r"(.*/)?(\.lock|[^/]+\.lock)": Guard.LOCK,
}


def guard_of(path: PurePath) -> Guard | None:
    """Return what guards a file, by its path below the folder that it was written to; None: no kind fits."""
    return next((guard for pattern, guard in KINDS.items() if re.fullmatch(pattern, path.as_posix())), None)
