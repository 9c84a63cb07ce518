"""A small collection in each form, written into a folder."""

from __future__ import annotations

from pathlib import Path

_POSTS = """\
{"post_id": "q1", "kind": "question", "title": "Is $2k+1$ odd?", "body": "Let $k$ be an integer."}
{"post_id": "a1", "kind": "answer", "parent_id": "q1", "body": "Yes, $2k+1$ is odd for every integer $k$."}
{"post_id": "a2", "kind": "answer", "parent_id": "q1", "body": "No formula."}
"""
FORMS: dict[str, dict[str, str]] = {
    "arqmath": {"Posts.V1.3.xml": '<posts><row Id="1" PostTypeId="1" Body="x"/></posts>'},
    "beir": {
        "corpus.jsonl": '{"_id": "1", "title": "Parity", "text": "$2k+1$"}\n{"_id": "2", "text": "Even."}\n',
        "queries.jsonl": '{"_id": "1", "text": "Is $3$ odd?"}\n{"_id": "2", "text": "Is $5$ odd?"}\n',
        "qrels/test.tsv": "query-id\tcorpus-id\tscore\n1\t1\t1\n1\t9\t1\n",
        "qrels/train.tsv": "2\t1\t1\n",
    },
    "jsonl": {
        "posts.jsonl": _POSTS,
        "topics.jsonl": '{"topic_id": "1", "body": "Which numbers are odd, $2k$ or $2k+1$?"}\n',
        "qrels.tsv": "1 0 a1 3\n1 0 a2 0\n",
    },
    "pairs": {
        "answers.jsonl": '{"post_id": "t1", "body": "The sum."}\n{"post_id": "t2", "body": "The product."}\n',
        "train.jsonl": '{"query": "A product", "document": "Its.", "query_id": "q2", "document_id": "t2"}\n',
        "topics-regular.jsonl": '{"post_id": "q1", "body": "$a+b$"}\n',
        "qrels-regular.tsv": "q1 0 t1 2\n",
    },
    "problems": {"train.jsonl": '{"problem": "Find $x$ if $x+1=2$.", "solution": "$x=1$."}\n'},
    "titles": {"questions.jsonl": '{"id": 7, "title": "Is $x$ odd?", "body": "Let $x=3$."}\n'},
}
"""The files of each collection, by its name; of ARQMath the posts alone."""


def write_form(name: str, folder: Path) -> Path:
    """Write the collection ``name`` into a folder of its name; return that."""
    root = folder / name
    for file, text in FORMS[name].items():
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root
