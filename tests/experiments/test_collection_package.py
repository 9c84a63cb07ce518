"""The collection of docs/collection-packages.md: installed as a separate package, learned from and searched."""

import csv
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.run import run
from graphs.corpus import installed
from graphs.corpus.corpus import Benchmark, Completed, Documents, TrainingPairs, open_corpus
from graphs.corpus.pairs import Linked, Related
from graphs.corpus.post import Pair, Post
from graphs.corpus.queries.collection import NamedTests
from graphs.corpus.stock.collection import CollectionStock
from graphs.corpus.stock.table import table
from graphs.errors import ConfigError, MathAMRError
from graphs.extensions import COLLECTIONS
from tests.documents.blocks import blocks_of
from tests.experiments.tiny_settings import SMALL, trial
from tests.graphs.corpus.small_forms import write_form

pytestmark = pytest.mark.usefixtures("without_plots")

ROOT = Path(__file__).resolve().parents[2]


def install(blocks: list[tuple[str, str]], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, target = folder / "package", folder / "site"
    package.mkdir()
    for name, content in blocks:
        (package / name).write_text(content)
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--quiet"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(package)]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    monkeypatch.syspath_prepend(target)
    monkeypatch.delitem(sys.modules, "mathamr_faq", raising=False)


@pytest.fixture
def example() -> list[tuple[str, str]]:
    page = blocks_of(ROOT / "docs" / "collection-packages.md")
    package = "mathamr-faq/"
    blocks = [(block.file.removeprefix(package), f"{block.text}\n") for block in page if block.file.startswith(package)]
    assert [name for name, _ in blocks] == ["pyproject.toml", "mathamr_faq.py"]
    return blocks


@pytest.fixture
def faq(tmp_path: Path) -> Path:
    root = tmp_path / "faq"
    root.mkdir()
    subjects = ("ring", "group", "field", "lattice", "module", "sheaf", "graph", "tree") * 4
    lines = (f"Is the {name} number {i} finite?\tThe {name} has ${i}$ elements." for i, name in enumerate(subjects))
    (root / "faq.tsv").write_text("\n".join(lines) + "\n")
    (root / "asked.tsv").write_text("How large is the lattice with $3$ elements?\t4\nWhich tree has $7$?\t8\n")
    return root


@pytest.mark.parametrize("track", ["bm25", "graph"])
def test_a_collection_of_another_package(
    track: str, example: list[tuple[str, str]], faq: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(example, tmp_path, monkeypatch)
    corpus = open_corpus("faq", faq)
    assert isinstance(corpus, Documents)
    assert isinstance(corpus, Benchmark)
    assert isinstance(corpus, TrainingPairs)
    settings = ["data=jsonl", "data.name=faq", f"data.root={faq}", "data.regime=full", f"track={track}"]
    config = trial(*SMALL, "train.device=cpu", "index=exact", *settings, f"outputs={tmp_path / 'out'}")
    ended = run(config, "command")
    assert ended.failed == 0, ended.table
    with (tmp_path / "out" / "trial-alone" / "results.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert float(row["ndcg_prime"]) > (0.9 if track == "bm25" else 0)
    with pytest.raises(ConfigError, match="is not a folder"):
        open_corpus("faq", faq / "elsewhere")
    with pytest.raises(ConfigError, match="unknown collection 'fqa'; known are arqmath, beir, faq"):
        open_corpus("fqa", faq)


@pytest.mark.parametrize("track", ["bm25", "graph"])
def test_an_answer_with_a_bad_id_is_a_counted_failure(
    track: str, example: list[tuple[str, str]], faq: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = dict(example)["mathamr_faq.py"]
    package(tmp_path, "Faq", code.replace("a{line}", "a{' ' * (line == 9)}{line}"), monkeypatch)
    settings = ["data=jsonl", "data.name=faq", f"data.root={faq}", "data.regime=full", f"track={track}"]
    ended = run(trial(*SMALL, "train.device=cpu", "index=exact", *settings, f"outputs={tmp_path / 'out'}"), "command")
    assert ended.failed == 0, ended.table
    stock = CollectionStock(open_corpus("faq", faq))
    for step in stock.steps():
        step.run(lambda number: None)
    assert table(stock.holdings(), "faq").startswith("faq, data=jsonl data.name=faq\n")
    (broken,) = (one for one in stock.holdings().missing if "broken" in one.what)
    assert re.search(r"1 broken post \(.* an answer with the id 'a 9'; give a printable one without", broken.what)


def test_packages_that_give_no_collection(
    example: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (name, project), (module, _) = example
    more = 'faq = "mathamr_faq:Faq"\nlost = "mathamr_faq:Lost"\nempty = "mathamr_faq:Empty"\nword = "mathamr_faq:WORD"'
    broken = "class Empty:\n    def __init__(self, root): ...\n\nWORD = 'faq'\n"
    install([(name, project.replace('faq = "mathamr_faq:Faq"', more)), (module, broken)], tmp_path, monkeypatch)
    assert {"empty", "faq", "lost", "word"} <= set(installed.names())
    with pytest.raises(ConfigError, match=r"empty of .* lacks name, posts, formulas, fingerprints; write them"):
        open_corpus("empty")
    with pytest.raises(ConfigError, match=r"collection lost of mathamr-faq 0\.1 .* cannot be imported: AttributeError"):
        open_corpus("lost")
    with pytest.raises(ConfigError, match=r"collection word of mathamr-faq 0\.1 .* is not a class or a function"):
        open_corpus("word")


def test_changed_code_of_a_package_changes_the_fingerprints(
    example: list[tuple[str, str]], faq: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(tmp_path, "Faq", dict(example)["mathamr_faq.py"], monkeypatch)
    before = open_corpus("faq", faq).fingerprints()
    assert open_corpus("faq", faq).fingerprints() == before
    package(tmp_path, "Faq", dict(example)["mathamr_faq.py"] + "# another\n", monkeypatch)
    after = open_corpus("faq", faq).fingerprints()
    assert {before.posts, before.topics, before.judgments}.isdisjoint({after.posts, after.topics, after.judgments})
    assert before.formulas == after.formulas == ""


FORMS = """
from graphs.corpus.files import Fingerprints
from graphs.corpus.post import Post, Topic

class Own:
    name = "faq"
    def __init__(self, root): ...
    @classmethod
    def posts(cls): return [Post(cls.name, "answer")]
    def formulas(self): return None
    @staticmethod
    def fingerprints(): return Fingerprints(posts="p")
    def tasks(self): return [1]
    @staticmethod
    def topics(task, years): return []
    def judgments(self, task, years): return []
    def links(self): return [("1", "2")]
    def related(self): return []

class Around:
    def __init__(self, root): self.own = Own(root)
    def __getattr__(self, name):
        if name == "own": raise AttributeError(name)
        return getattr(self.own, name)
"""


@pytest.mark.parametrize("kind", ["Own", "Around"])
def test_methods_of_every_form_are_checked(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path, kind, FORMS, monkeypatch)
    corpus = open_corpus("faq")
    read_whole(corpus)
    assert corpus.fingerprints().posts != "p"
    assert [post.post_id for post in corpus.posts()] == ["faq"]
    assert pickle.dumps(corpus)  # for another process
    assert isinstance(corpus, Linked)
    assert isinstance(corpus, Related)
    assert not isinstance(corpus, Completed | NamedTests | TrainingPairs)


RECORDS = """
from graphs.corpus.files import Fingerprints
from graphs.corpus.post import Judgment, Post, Topic

class Own:
    name = "faq"
    def __init__(self, root): ROOT
    def posts(self): return POSTS
    def formulas(self): return None
    def fingerprints(self): return PRINTS
    def tasks(self): return [1]
    def topics(self, task, years): return TOPICS
    def judgments(self, task, years): return JUDGED
"""


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"POSTS": 'Post("a", "Answer")'},
            r"Post\(post_id='a', kind='Answer'.* whose kind is 'Answer'; give one of quest",
        ),
        ({"POSTS": 'Post(7, "answer")'}, r"posts\(\) gives Post\(post_id=7.* whose post_id is 7; give a string"),
        ({"POSTS": 'Post("a", "answer", markup="HTML")'}, "whose markup is 'HTML'; give one of html, text"),
        ({"JUDGED": '[Judgment("1", "", 1)]'}, "whose doc_id is ''; give a printable string without blanks"),
        ({"POSTS": 'Post("a", "answer", body=None)'}, "whose body is None; give a string"),
        ({"POSTS": '{"id": "a"}'}, r"posts\(\) gives .*'id': 'a'.*; give records of the class Post"),
        ({"PRINTS": '"abc"'}, r"fingerprints\(\) returned str; return graphs\.corpus\.files\.Fingerprints"),
        ({"TOPICS": '{"1": "Why?"}'}, r"topics\(\) gives '1'; give records of the class Topic"),
        ({"TOPICS": '[Topic("1", Post("1", "topic", body=3))]'}, "whose body is 3; give a string"),
        (
            {"JUDGED": '[Judgment("1", "a", 0.5)]'},
            r"topic_id='1', doc_id='a'.* whose grade is 0\.5; give a whole number",
        ),
        ({"JUDGED": "None"}, r"judgments\(\) gives NoneType; give records of the class Judgment"),
        ({"ROOT": 'root / "x"'}, r"cannot be opened without a folder: TypeError: .*; give data\.root="),
    ],
)
def test_wrong_records_of_a_package_are_named(
    changed: dict[str, str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = {"POSTS": '[Post("a", "answer")]', "PRINTS": 'Fingerprints(posts="p")', "TOPICS": "[]", "JUDGED": "[]"}
    code = RECORDS
    for name, value in {"ROOT": "...", **parts, **changed}.items():
        code = code.replace(name, f"[{value}]" if name == "POSTS" and name in changed else value)
    package(tmp_path, "Own", code, monkeypatch)
    with pytest.raises(MathAMRError, match=rf"^collection faq of mathamr-faq 0\.1 \(mathamr_faq:Own\).*{message}"):
        read_whole(open_corpus("faq"))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("def posts", "def pots", "lacks posts; write them"),
        ("def fingerprints", "def fingerprint", "lacks fingerprints; write them"),
        ("def judgments", "def jugdments", "lacks judgments; write them"),
        (
            "@staticmethod\n    def fingerprints(): return",
            "@property\n    def fingerprints(self): return self.fles or",
            "cannot give fingerprints: AttributeError: .* 'fles'; mend the package",
        ),
        ('"faq"', '"fqa"', "has the name 'fqa'; write name = 'faq', as the entry point has it"),
    ],
)
def test_a_misspelt_member_is_named(
    before: str, after: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(tmp_path, "Own", FORMS.replace(before, after), monkeypatch)
    with pytest.raises(ConfigError, match=rf"^collection faq of mathamr-faq 0\.1 \(mathamr_faq:Own\) {message}"):
        open_corpus("faq")


def test_a_built_in_form_that_a_function_opens_keeps_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "from graphs.corpus.jsonl import JsonLines\n\ndef open_faq(root):\n    return JsonLines(root)\n"
    package(tmp_path, "open_faq", code, monkeypatch)
    root = write_form("jsonl", tmp_path / "faq")
    corpus, built_in = open_corpus("faq", root), open_corpus("jsonl", root)
    assert list(corpus.posts()) == list(built_in.posts())
    assert corpus.name == "jsonl"
    assert corpus.fingerprints() != built_in.fingerprints()


def test_texts_of_pairs_keep_ids_with_blanks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "from graphs.corpus.pair_sets.pair_collection import PairCollection\n\nopen_faq = PairCollection\n"
    package(tmp_path, "open_faq", code, monkeypatch)
    (tmp_path / "answers.jsonl").write_text('{"post_id": "a1", "body": "A group with finitely many elements."}\n')
    pair = '{"query_id": "finite group", "query": "What is finite?", "document_id": "a1", "document": "A group."}\n'
    (tmp_path / "train.jsonl").write_text(pair)
    corpus = open_corpus("faq", tmp_path)
    assert isinstance(corpus, TrainingPairs)
    assert [post.post_id for post in corpus.posts() if isinstance(post, Post)] == ["a1", "finite group"]
    assert list(corpus.pairs()) == [Pair("finite group", "a1")]


def test_a_collection_with_the_name_of_a_built_in_form_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(tmp_path, "Own", FORMS, monkeypatch)
    points = tmp_path / "mathamr_faq-0.1.dist-info" / "entry_points.txt"
    points.write_text(points.read_text().replace("faq =", "jsonl ="))
    with pytest.raises(
        ConfigError, match=r"two collections are called jsonl: of mathamr-plus and of mathamr-faq 0\.1; un"
    ):
        open_corpus("jsonl", write_form("jsonl", tmp_path / "forms"))


def read_whole(corpus: Documents) -> None:
    assert isinstance(corpus, Benchmark)
    corpus.fingerprints(), list(corpus.posts()), corpus.topics(1, []), corpus.judgments(1, [])


def package(site: Path, kind: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a distribution with an entry point, as an installer leaves it."""
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "mathamr_faq", raising=False)
    (site / "mathamr_faq.py").write_text(code)
    record = site / "mathamr_faq-0.1.dist-info"
    record.mkdir(exist_ok=True)
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: mathamr-faq\nVersion: 0.1\n")
    (record / "entry_points.txt").write_text(f"[{COLLECTIONS}]\nfaq = mathamr_faq:{kind}\n")
