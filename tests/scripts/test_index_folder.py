"""mathamr index FOLDER, from documents to hits with their places, and its updates."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import scripts.build_collection
import scripts.index
import scripts.search
from experiments import cli
from graphs.amr.embedded import EmbeddedParser
from graphs.errors import ConfigError, StoreError
from graphs.stores.collection import Collection
from mathamr import MathAMR, PostIndex
from mathamr.pretrained import folder
from mathamr.search.catalog import settings_of
from mathamr.stages.console import Console
from mathamr.stages.retrieval import folder_index
from mathamr.stages.retrieval.indexing import IndexBuild
from mathamr.systems.structure import StructureSearch
from mathamr.text.encoder import TextEncoder
from mathamr.text.training.tiny import make_tiny
from tests.documents.blocks import ROOT, blocks_of


@pytest.fixture
def model(work: Path, tmp_path: Path) -> Path:
    MathAMR.from_checkpoint(work / "model1", work / "graphs.db").save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def found(index: Path, capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str]]:
    """Return the places and titles of the hits, best first."""
    capsys.readouterr()
    assert scripts.search.main([f"index={index}", "Both $\\sqrt2$ and $\\sqrt3$ are irrational.", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    return [(result["post_id"].partition("~")[0], str(result["title"][0])) for result in results]


def write_notes(notes: Path) -> None:
    """Write a lemma in LaTeX, a paragraph in Markdown, and a file that cannot be read."""
    notes.mkdir()
    (notes / "a.tex").write_text(
        "\\section{Roots}\n\n\\begin{lemma}\nBoth $\\sqrt2$ and $\\sqrt3$ are irrational.\n\\end{lemma}\n"
    )
    (notes / "b.md").write_text("# Integrals\n\nThe integral $\\int_0^1 x\\,dx$ is $1/2$.\n")
    (notes / "c.pdf").write_bytes(b"%PDF")


def test_a_folder_is_indexed_searched_and_updated(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes, out = tmp_path / "notes", tmp_path / "notes/an ïndex"
    write_notes(notes)
    words = [str(notes), "--model", str(model), "--out", str(out)]
    assert scripts.index.main(words) == 0
    printed = capsys.readouterr().out
    assert "2 files, 2 passages (1 LaTeX, 1 Markdown)" in printed
    assert "1 file cannot be read:\n" in printed
    assert "c.pdf: a PDF has no formulas in LaTeX" in printed
    assert printed.endswith(f"\nsearch:    mathamr search 'index={out}' 'QUERY'\n")
    assert found(out, capsys) == [("a.tex:3", "Lemma. Roots"), ("b.md:3", "Integrals")]
    assert "c.pdf" in (out / "folder/failures.tsv").read_text(encoding="utf-8")

    (notes / "b.md").unlink()
    (notes / "d.md").write_text("Both $\\sqrt2$ and $\\sqrt3$ are irrational.\n")
    assert scripts.index.main([*words, "--update"]) == 0
    printed = capsys.readouterr().out
    assert "encoded:   1 post" in printed
    assert "1 kept from the index before" in printed
    assert "1 new or changed, 1 unchanged, 1 removed" in printed
    assert {place for place, _ in found(out, capsys)} == {"a.tex:3", "d.md:1"}
    assert len(list((out / "folder").glob("*.db"))) == 1

    assert scripts.index.main([*words, "--update"]) == 0
    assert "nothing has changed" in capsys.readouterr().out
    assert len(found(out, capsys)) == 2

    posts = [json.loads(line)["post_id"] for line in (out / "folder/posts.jsonl").read_text().splitlines()]
    (tmp_path / "gone.txt").write_text(posts[0])
    assert scripts.index.main([*words, "--update", "--remove", str(tmp_path / "gone.txt")]) == 0
    assert [place for place, _ in found(out, capsys)] == [posts[1].partition("~")[0]]


def test_a_collection_without_topics_is_indexed_with_a_saved_model(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {"a1": "Both $\\sqrt2$ and $\\sqrt3$ are irrational.", "a2": "The integral $\\int_0^1 x\\,dx$ is $1/2$."}
    problems = [{"problem": f"What of {name}?", "solution": text} for name, text in texts.items()]
    (tmp_path / "posts").mkdir()
    (tmp_path / "posts/own.jsonl").write_text("\n".join(map(json.dumps, problems)))
    collection = ["--corpus", "problems", "--root", str(tmp_path / "posts")]
    assert scripts.build_collection.main([*collection, "--out", str(tmp_path / "graphs.db")]) == 0
    words = [*collection, "--graphs-db", str(tmp_path / "graphs.db"), "--model", str(model)]
    out = tmp_path / "index"
    assert scripts.index.main([*words, "--out", str(out), "--workers", "0"]) == 2
    assert "at least 1 process" in capsys.readouterr().err
    for update, printed in (([], "encoded:   2 posts"), (["--update"], "2 kept from the index before")):
        assert scripts.index.main([*words, "--out", str(out), *update]) == 0
        assert printed in capsys.readouterr().out
    assert scripts.search.main([f"index={out}", "k=1", "What is irrational?"]) == 0
    assert "post own-1/solution" in capsys.readouterr().out

    more = {"problem": "What of a3?", "solution": "The sum $\\sum_n 1/n$ diverges."}
    (tmp_path / "posts/own.jsonl").write_text("\n".join(map(json.dumps, [*problems, more])))
    (tmp_path / "graphs.db").unlink()
    assert scripts.build_collection.main([*collection, "--out", str(tmp_path / "graphs.db")]) == 0
    assert scripts.index.main([*words, "--out", str(out), "--update"]) == 0
    assert "2 kept from the index before" in capsys.readouterr().out


def test_an_update_keeps_the_settings_that_are_not_given(model: Path, tmp_path: Path) -> None:
    notes, out = tmp_path / "notes", tmp_path / "index"
    notes.mkdir()
    (notes / "a.md").write_text("Both $\\sqrt2$ and $\\sqrt3$ are irrational.\n")
    words = [str(notes), "--model", str(model), "--out", str(out)]
    given = ["--backend", "approximate", "--dtype", "float16", "--kinds", "answer", "question"]
    assert scripts.index.main([*words, *given]) == 0
    before = settings_of(out)
    assert before["kinds"] == ["answer", "question"]
    (notes / "b.md").write_text("The integral $\\int_0^1 x\\,dx$ is $1/2$.\n")
    assert scripts.index.main([*words, "--update"]) == 0
    assert settings_of(out) == before
    state = (out / "folder/indexed.json").read_bytes()
    assert scripts.index.main([*words, "--update", "--workers", "0"]) == 2
    assert (out / "folder/indexed.json").read_bytes() == state
    assert scripts.index.main([*words, "--update", "--backend", "exact"]) == 0
    assert settings_of(out) == before | {"backend": "exact"}


def test_an_update_by_another_parser_makes_all_graphs_and_vectors_anew(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, out = tmp_path / "notes", tmp_path / "index"
    notes.mkdir()
    (notes / "a.md").write_text("Both $\\sqrt2$ and $\\sqrt3$ are irrational.\n")
    words = [str(notes), "--model", str(model), "--out", str(out), "--update"]
    assert scripts.index.main(words) == 0
    monkeypatch.setattr(EmbeddedParser, "version", "later")
    capsys.readouterr()
    assert scripts.index.main(words) == 0
    printed = capsys.readouterr()
    assert "all passages are parsed anew by embedded later" in " ".join(printed.err.split())
    assert "encoded:   1 post" in printed.out
    assert "kept from the index before" not in printed.out
    (notes / "b.md").write_text("Neither $\\sqrt2$ nor $\\sqrt3$ is rational.\n")
    assert scripts.index.main(words) == 0
    assert "1 kept from the index before" in capsys.readouterr().out
    (graphs,) = (out / "folder").glob("collection-*.db")
    with Collection(graphs) as made:
        assert str(made.meta["parser"]).startswith("embedded later ")
    assert scripts.index.main(words) == 0
    assert "nothing has changed" in capsys.readouterr().out


def test_an_update_that_was_killed_after_the_switch_is_not_taken_for_the_state_before(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, out = tmp_path / "notes", tmp_path / "index"
    notes.mkdir()
    first, second = "Both $\\sqrt2$ and $\\sqrt3$ are irrational.\n", "Neither $\\sqrt2$ nor $\\sqrt3$ is rational.\n"
    (notes / "a.md").write_text(first)
    words = [str(notes), "--model", str(model), "--out", str(out)]
    assert scripts.index.main(words) == 0
    (notes / "a.md").write_text(second)
    with monkeypatch.context() as patched:
        patched.setattr(folder_index, "write_whole", Mock(side_effect=KeyboardInterrupt))
        assert scripts.index.main([*words, "--update"]) == 130
    (notes / "a.md").write_text(first)
    assert scripts.index.main([*words, "--update"]) == 0
    assert "nothing has changed" not in capsys.readouterr().out
    assert scripts.search.main([f"index={out}", "Is it irrational?"]) == 0
    assert "are irrational." in capsys.readouterr().out


def test_an_update_after_a_stopped_one_counts_the_files_that_differ_from_the_index(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, out = tmp_path / "notes", tmp_path / "index"
    notes.mkdir()
    texts = {name: f"The root of ${number}$ is irrational.\n" for number, name in enumerate("abcd", 2)}
    for name in "abc":
        (notes / f"{name}.md").write_text(texts[name])
    words = [str(notes), "--model", str(model), "--out", str(out)]
    assert scripts.index.main(words) == 0
    (notes / "a.md").write_text(texts["a"].replace("The", "Each"))
    (notes / "b.md").unlink()
    (notes / "c.md").write_text(texts["c"].replace("The", "Each"))
    (notes / "d.md").write_text(texts["d"])
    with monkeypatch.context() as patched:
        patched.setattr(folder_index, "build_search_index", Mock(side_effect=KeyboardInterrupt))
        assert scripts.index.main([*words, "--update"]) == 130
    (notes / "c.md").write_text(texts["c"])
    capsys.readouterr()
    assert scripts.index.main([*words, "--update"]) == 0
    printed = capsys.readouterr().out
    assert "encoded:   2 posts" in printed
    assert "1 kept from the index before" in printed
    assert "2 new or changed, 1 unchanged, 1 removed" in printed
    assert scripts.index.main([*words, "--update"]) == 0
    assert "0 new or changed, 3 unchanged, 0 removed" in capsys.readouterr().out


def test_the_commands_of_the_document_find_its_example(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/folder.md"""
    document, *commands = (block.text for block in blocks_of(ROOT / "docs/folder.md") if block.test)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/primes.md").write_text(document)
    (tmp_path / "models").mkdir()
    model.rename(tmp_path / "models/mine")
    monkeypatch.chdir(tmp_path)
    without_model, with_model, in_python = commands
    for some, why in (
        (without_model, "words    many, primes\n     formula  $p$  <-  $p$: 1 of 1 symbols\n"),
        (with_model, ""),
    ):
        for line in some.splitlines():
            assert cli.main(shlex.split(line)[1:]) == 0
        printed = capsys.readouterr().out
        assert "1. Theorem (Euclid). Primes\n   post primes.md:3~" in printed
        assert why in printed
    exec(in_python)
    printed = capsys.readouterr().out
    assert printed.startswith("Theorem (Euclid). Primes ")
    assert "Overlap(words=('many', 'primes'), formulas=" in printed
    assert "There are infinitely many primes $p$." in printed
    with PostIndex.open("index") as index, pytest.raises(ConfigError, match="has no strategies; leave out strategy"):
        index.search("primes", strategy="single_vector")
    with PostIndex.open("index-of-model") as index:
        assert index.search("How many primes $p$ are there?", k=1)[0].explanation is None


def test_notes_explain_relative_scores_and_an_index_without_formulas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.md").write_text("Every prime $p$ is odd, or 2.\n")
    relative = "scores of posts are relative: 0 is the mean of those that a query finds, and the score of a single one"
    outdated = "this index finds no formulas, because an earlier version made it; build it again with mathamr index"
    words = [str(tmp_path / "notes"), "--out", str(tmp_path / "index")]
    search = [f"index={tmp_path / 'index'}", "prime $p$"]
    assert scripts.index.main(words) == 0
    capsys.readouterr()
    assert scripts.search.main(search) == 0
    printed = capsys.readouterr()
    assert "score 0.000" in printed.out
    assert f"\nnote: {relative}\n" in printed.err
    assert scripts.search.main([*search, "task=formulas"]) == 0
    assert relative not in capsys.readouterr().err
    write = StructureSearch.write

    def written_before(search: StructureSearch, folder: Path) -> None:
        write(search, folder)
        (folder / "formulas.tsv").unlink()

    monkeypatch.setattr(StructureSearch, "write", written_before)
    assert scripts.index.main(words) == 0
    assert scripts.search.main(search) == 0
    assert f"\nnote: {relative}; {outdated}\n" in capsys.readouterr().err
    assert scripts.search.main([*search, "task=formulas"]) == 2
    printed = capsys.readouterr()
    assert {outdated, f"note: {outdated}"} <= set(printed.err.splitlines())


def test_words_are_found_without_their_accents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.md").write_text("# Strips\n\nAugust Möbius glued the ends of a strip.\n")
    (tmp_path / "notes/b.md").write_text("# Tori\n\nMobius groups act on the sphere.\n")
    assert scripts.index.main([str(tmp_path / "notes"), "--out", str(tmp_path / "index")]) == 0
    for query in ("Mobius", "MÖBIUS"):
        capsys.readouterr()
        assert scripts.search.main([f"index={tmp_path / 'index'}", query]) == 0
        printed = capsys.readouterr().out
        assert printed.count(f"words    {query.lower()}") == 2


@pytest.mark.parametrize("tracks", [[], ["bm25"], ["text"], ["bm25", "structure", "text"]], ids="+".join)
def test_documents_are_indexed_without_a_model(
    tracks: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes, out = tmp_path / "notes", tmp_path / "notes/index"
    write_notes(notes)
    words = [str(notes), "--out", str(out), "--set", "text.encoder=tiny", *(["--track", *tracks] if tracks else [])]
    assert scripts.index.main(words) == 0
    printed = capsys.readouterr().out
    assert f"index:     2 posts of notes, ranked by {'+'.join(tracks) or 'bm25+structure'}\n" in printed
    assert "c.pdf: a PDF has no formulas in LaTeX" in printed
    assert found(out, capsys)[0] == ("a.tex:3", "Lemma. Roots")
    code = scripts.search.main([f"index={out}", "task=formulas", "k=1", "$\\int_a^b x\\,dx$"])
    printed = capsys.readouterr()
    if not tracks or "structure" in tracks:
        assert (code, "of post b.md:3~" in printed.out) == (0, True)
    else:
        assert (code, "track=structure alone or as a part" in printed.err) == (2, True)

    (notes / "a.tex").unlink()
    (notes / "d.md").write_text("Both $\\sqrt2$ and $\\sqrt3$ are irrational.\n")
    assert scripts.index.main(words) == 0
    assert found(out, capsys)[0][0] == "d.md:1"
    assert sorted(path.name for path in (out / "folder").iterdir() if not path.name.startswith(".")) == [
        "failures.tsv", "files.json", "posts.jsonl", "read.json",
    ]  # fmt: skip


def test_words_and_formulas_are_searched_without_torch(tmp_path: Path) -> None:
    """It takes longer to import than such a search."""
    write_notes(tmp_path / "notes")
    assert scripts.index.main([str(tmp_path / "notes"), "--out", str(tmp_path / "index")]) == 0
    words = [f"index={tmp_path / 'index'}", "the integral of $x$"]
    program = f"import sys, scripts.search; scripts.search.main({words}); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    first, *_, imported = done.stdout.splitlines()
    assert (first, imported) == ("1. Integrals", "False")


def test_vectors_of_unchanged_passages_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []
    encode = TextEncoder.encode

    def noted(self: TextEncoder, texts: Sequence[str], *given: Any, **options: Any) -> Any:
        encoded.extend(text.partition(" ")[2] for text in texts)  # after the title
        return encode(self, texts, *given, **options)

    monkeypatch.setattr(TextEncoder, "encode", noted)
    notes, out = tmp_path / "notes", tmp_path / "index"
    notes.mkdir()
    make_tiny(["Every field is a ring.", "Primes are odd."], tmp_path / "encoder")
    words = [str(notes), "--out", str(out), "--track", "text", "bm25", "--set", f"text.encoder={tmp_path / 'encoder'}"]
    texts = ["Every field is a ring.", "Primes are odd, except two.", "All primes but two are odd."]
    for name, text in zip(("a.md", "b.md", "b.md"), texts, strict=True):
        (notes / name).write_text(f"{text}\n")
        assert scripts.index.main(words) == 0
    assert encoded == texts
    assert scripts.index.main([*words, "text.max_length=16"]) == 0
    assert sorted(encoded[3:]) == sorted([texts[0], texts[2]])


def test_documents_without_formulas_are_indexed_by_their_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes, out = tmp_path / "notes", tmp_path / "index"
    notes.mkdir()
    (notes / "a.md").write_text("Both roots are irrational numbers.\n")
    words = [str(notes), "--out", str(out)]
    assert scripts.index.main([*words, "--track", "structure"]) == 2
    assert "the documents have no formulas, which track=structure compares" in capsys.readouterr().err
    assert scripts.index.main(words) == 0
    printed = capsys.readouterr()
    assert "index:     1 post of notes, ranked by bm25\n" in printed.out
    assert "indexed without track=structure" in printed.err
    assert [place for place, _ in found(out, capsys)] == ["a.md:1"]


def test_an_update_does_not_take_the_index_of_other_systems_for_that_of_its_model(model: Path, tmp_path: Path) -> None:
    notes, out = tmp_path / "notes", tmp_path / "index"
    notes.mkdir()
    (notes / "a.md").write_text("Both $\\sqrt2$ and $\\sqrt3$ are irrational.\n")
    words = [str(notes), "--out", str(out)]
    assert scripts.index.main([*words, "--model", str(model)]) == 0
    assert scripts.index.main(words) == 0
    files = folder.read(model)
    own, options = folder_index.FolderModel(model, files.vocabulary, files.spec), IndexBuild(update=True)
    with pytest.raises(StoreError, match="is not of format mathamr-catalog"):
        folder_index.index_folder(notes, out, own, options, Console())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--track", "graph"], "learns from pairs, which documents do not have"),
        (["--track", "text", "--set", "text.epochs=1"], "learns from pairs, which documents do not have"),
        (["--track", "fusion"], "combines other systems; name these, e.g. --track bm25 structure"),
        (["--track", "latent"], "lacks the method keep"),
        (["--track", "bm25", "bm25"], "names a system twice"),
        (["--track", "bm52"], "did you mean bm25"),
        (["--track", "bm25", "--set", "bm25.q=1"], "unknown key bm25.q"),
        (["--set", "track=text"], "--set track=text: mathamr index sets this key itself"),
        (["--set", "data.root=elsewhere"], "--set data.root=elsewhere: mathamr index sets this key itself"),
        (["--track", "bm25", "--update"], "--update is an option of graph models"),
        (["--workers", "0"], "at least 1 process is needed"),
        (["--seed", "7"], "--seed selects a finished job; name it by --from, or leave --seed out"),
        (["--root", "elsewhere"], "FOLDER is the collection; leave out"),
        (["--set", "bm25.b=1", "--model", "model"], "--set changes the systems of --track"),
        (["--track", "bm25", "--model", "model"], "--from, --model and --track exclude each other"),
    ],
)
def test_what_cannot_index_documents_without_a_model_is_named(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.md").write_text("Every field is a ring.\n")
    assert _code([str(tmp_path / "notes"), "--out", str(tmp_path / "index"), *words]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "index").exists()


def _code(words: list[str]) -> int:
    """Return the exit code, also of a usage error."""
    try:
        return scripts.index.main(words)
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.mark.parametrize(
    ("folder", "message"), [("gone", "is not a folder"), ("empty", "has no text that can be read")]
)
def test_a_folder_that_cannot_be_read_leaves_nothing(
    model: Path, tmp_path: Path, folder: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    words = [str(tmp_path / folder), "--model", str(model)]
    assert scripts.index.main([*words, "--out", str(tmp_path / "new/index")]) == 2
    assert scripts.index.main([*words, "--out", str(tmp_path / "empty")]) == 2
    assert capsys.readouterr().err.count(message) == 2
    assert {path.name for path in tmp_path.iterdir()} == {"empty", "model"}
    assert not list((tmp_path / "empty").iterdir())


def test_options_that_do_not_fit_a_folder_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, message in (
        (["data.regime=full", "--out", "index"], "data.regime=full is a setting, which mathamr index does not take"),
        (["notes", "--model", "model"], "--out missing"),
        (["--from", "outputs/trial", "bm25", "--set", "bm25.b=1"], "--set changes the systems of --track"),
        (["notes", "--model", "model", "--out", "index", "--corpus", "jsonl"], "FOLDER is the collection"),
    ):
        with pytest.raises(SystemExit):
            scripts.index.main(words)
        assert message in capsys.readouterr().err
