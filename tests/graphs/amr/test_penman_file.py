"""Graphs made elsewhere, found by the id of their post (docs/amr.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphs.amr.document import DocumentAMR, sentences_of
from graphs.amr.parser import parse_documents
from graphs.amr.penman_file import PenmanFileParser
from graphs.amr.penman_text import decode, encode
from graphs.errors import AMRError, Failure

TOPICS = Path(__file__).resolve().parents[3] / ".." / "shared" / "data" / "amr" / "arqmath_topics_parsed.penman"
TEXT = """# AMR release; header

# ::id 1 ::kind question
# ::snt Prove it.
(p / prove-01
   :ARG1 (i / it~1))

# ::id ü2
(d / document :snt1 (a / x) :snt2 (b / y))
# ::id 3
(b / broken
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "graphs.penman"
    path.write_text(text, encoding="utf-8")
    return path


def test_documents_come_by_id_and_failures_name_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, TEXT.replace("\n# ::id 3", "\n\n# ::id 3"))
    parser = PenmanFileParser(path)
    documents = [("1", ["not looked at"]), ("ü2", []), ("3", []), ("4", ["x"])]
    first, second, broken, missing = parse_documents(parser, documents)
    assert isinstance(first, DocumentAMR)
    assert encode(first.graph) == "(p / prove-01 :ARG1 (i / it))"
    assert isinstance(second, DocumentAMR)
    assert encode(second.graph) == "(m / multi-sentence :snt1 (a / x) :snt2 (b / y))"
    assert isinstance(broken, Failure)
    assert (broken.post_id, broken.kind) == ("3", "truncated")
    assert "graphs.penman" in broken.message
    assert isinstance(missing, Failure)
    assert (missing.post_id, missing.kind) == ("4", "unknown_id")
    assert parser.model.startswith("graphs.penman sha256:")


def test_a_comment_line_after_a_graph_begins_the_next_one(tmp_path: Path) -> None:
    second = PenmanFileParser(write(tmp_path, "# ::id 1\n(a / x)\n# ::id 2\n(b / y)\n")).document("2")
    assert isinstance(second, DocumentAMR)
    assert encode(second.graph) == "(b / y)"


def test_a_graph_belongs_to_the_last_id_before_it(tmp_path: Path) -> None:
    text = """# ::id 1
# ::snt It failed.

  # ::id 2
# ::formula_map {"FORMULA_0": "7"}

(s / solve-01 :ARG1 (f / FORMULA_0))

# ::id 3
"""
    parser = PenmanFileParser(write(tmp_path, f"\ufeff{text}"))
    first, second, third = parse_documents(parser, [("1", []), ("2", []), ("3", [])])
    assert isinstance(second, DocumentAMR)
    assert second.formula_map == {"FORMULA_0": "7"}
    for failure, post_id in ((first, "1"), (third, "3")):
        assert isinstance(failure, Failure)
        assert failure.kind == "no_graph"
        assert failure.message.endswith(f"no graph follows '# ::id {post_id}'")
    (by_text,) = parser.parse([["It failed."]])
    assert isinstance(by_text, Failure)
    assert by_text.kind == "no_graph"


def test_chunks_come_by_their_sentences(tmp_path: Path) -> None:
    graph, missing = PenmanFileParser(write(tmp_path, TEXT)).parse([["Prove", "it."], ["Other."]])
    assert isinstance(graph, str)
    assert decode(graph).top == "p"
    assert isinstance(missing, Failure)
    assert missing.kind == "unknown_sentence"


@pytest.mark.parametrize(
    ("text", "kind"), [("(a / x)\n", "no_id"), ("# ::id 1\n(a / x)\n\n# ::id 1\n(b / y)\n", "duplicate_id")]
)
def test_a_file_that_cannot_serve_is_refused(tmp_path: Path, text: str, kind: str) -> None:
    with pytest.raises(AMRError) as caught:
        PenmanFileParser(write(tmp_path, text))
    assert caught.value.kind == kind


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AMRError, match="No such file"):
        PenmanFileParser(tmp_path / "none.penman")


@pytest.mark.shared
def test_all_real_parses_become_documents_whose_nodes_have_sentences() -> None:
    if not TOPICS.exists():
        pytest.skip(f"{TOPICS} is not there")
    parser = PenmanFileParser(TOPICS)
    ids = [line[7:].strip() for line in TOPICS.read_text(encoding="utf-8").splitlines() if line.startswith("# ::id ")]
    documents = parse_documents(parser, [(post_id, []) for post_id in ids])
    assert len(documents) == 285
    whole = 0
    for document in documents:
        assert isinstance(document, DocumentAMR)
        assert decode(encode(document.graph)).triples == document.graph.triples
        sentence, roots = sentences_of(document.graph)
        assert set(sentence.values()) - {-1} == set(range(len(roots)))
        assert set(sentence) == document.graph.variables()
        whole += list(sentence.values()).count(-1) <= 1
    assert whole == 269  # in the others, the parser hung parts below the root that nothing ties to a sentence


def test_a_formula_map_comes_with_its_graph_and_a_broken_one_is_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "graphs.penman"
    path.write_text(
        '# ::id 1\n# ::formula_map {"FORMULA_1": "q_9", "FORMULA_0": "q_7"}\n(p / prove-01)\n\n'
        '# ::id 2\n# ::formula_map {"FORMULA_1": "q_9"}\n(p / prove-01)\n\n'
        "# ::id 3\n# ::formula_map {\n(p / prove-01)\n\n# ::id 4\n(p / prove-01)\n"
    )
    parser = PenmanFileParser(path)
    known, gap, broken, none = (parser.document(post_id) for post_id in "1234")
    assert isinstance(known, DocumentAMR)
    assert list((known.formula_map or {}).items()) == [("FORMULA_0", "q_7"), ("FORMULA_1", "q_9")]
    for failure in (gap, broken):
        assert isinstance(failure, Failure)
        assert failure.kind == "formula_map"
    assert isinstance(none, DocumentAMR)
    assert none.formula_map is None
