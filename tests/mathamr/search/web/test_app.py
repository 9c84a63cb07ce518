"""The JSON interface (docs/search-api.md): what it finds, what it refuses, and whom."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from graphs.corpus.post import FormulaRef, PlaceholderText
from graphs.stores.posts import PostText
from mathamr.retrieval.index import STRATEGIES, Strategy
from mathamr.search.answer import Result
from mathamr.search.engine import Engine
from mathamr.search.selection import Selection, read_filters
from mathamr.search.settings import Settings
from mathamr.search.system_engine import SystemEngine
from mathamr.search.web import answers, export
from mathamr.search.web import app as web_app
from mathamr.search.web.app import PAGE, create_app
from mathamr.search.web.guard import HEADERS, MAX_BODY
from tests.mathamr.search.web.fixed_system import Fixed

HOME = "http://127.0.0.1:8000"
QUERY = "Both $\\sqrt2$ and $\\sqrt3$ are irrational."


@pytest.fixture
def client(engine: Engine, settings: Settings) -> Iterator[TestClient]:
    with TestClient(create_app(engine, settings), base_url=HOME, raise_server_exceptions=False) as client:
        yield client


def ask(client: TestClient, **asked: Any) -> dict[str, Any]:
    response = client.post("/api/search", json=asked)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def test_answers_have_title_text_score_and_matches(client: TestClient) -> None:
    found = ask(client, query=QUERY, k=2)
    assert len(found["results"]) == 2
    first = found["results"][0]
    assert (first["post_id"], first["title"], first["score"]) == ("14", ["Is ", {"latex": "\\sqrt2"}, " odd?"], 4.0)
    assert first["snippet"] == ["Both ", {"latex": "\\sqrt2"}, " and ", {"latex": "\\sqrt3"}, " are irrational."]
    assert first["question"] == {"post_id": "1", "snippet": ["Well?"]}  # the title is above
    assert found["best"] == 4.0
    assert [(match["query"]["kind"], match["score"]) for match in first["matches"]] == [
        ("formula", 1.0),
        ("formula", 1.0),
        ("sentence", 1.0),
        ("document", 1.0),
    ]
    assert first["matches"][1]["document"] == {"kind": "formula", "number": 2, "text": [{"latex": "\\sqrt3"}]}
    assert set(found["seconds"]) == {"query", "search", "explanation"}


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_strategy_ranks_as_the_engine_does(client: TestClient, engine: Engine, name: str) -> None:
    wanted = engine.answer(QUERY, strategy=Strategy(name), k=5).results
    found = ask(client, query=QUERY, strategy=name, k=5)
    assert [result["post_id"] for result in found["results"]] == [result.post.post_id for result in wanted]
    assert found["best"] == (1.0 if name == "single_vector" else 4.0)
    for result in found["results"]:
        assert sum(match["score"] for match in result["matches"]) == pytest.approx(result["score"], abs=1e-3)
        assert result["more_matches"] == 0


def test_formulas_are_shown_in_their_sentence(client: TestClient) -> None:
    found = ask(client, query="What is $\\int_0^1 x\\,dx$?", task="formulas", k=1)
    (result,) = found["results"]
    assert result["formula"] == {"formula_id": "12:0", "latex": "\\int_0^1 x\\,dx"}
    assert result["snippet"][:2] == ["The integral ", {"latex": "\\int_0^1 x\\,dx", "found": True}]
    assert found["formula"] == {"latex": "\\int_0^1 x\\,dx"}


def test_formulas_come_with_their_match_and_the_renaming(client: TestClient, engine: Engine) -> None:
    found = ask(client, query="Is $t^2 = 3u^2$?", task="formulas", k=1)
    (result,) = found["results"]
    assert result["formula"] == {"formula_id": "11:1", "latex": "p^2 = 2q^2"}
    match = result["match"]
    assert (match["matched"], match["symbols"], match["renaming"]) == (6, 6, [["t", "p"], ["u", "q"]])
    assert match["changed"] == [["3", "2"]]
    assert match["query"]["tag"] == "math"
    assert match["query"]["children"][0]["children"][0] == {"tag": "mi", "role": "renamed", "text": "t"}
    assert match["formula"]["children"][2] == {"tag": "mn", "role": "changed", "text": "2"}
    (wanted,) = engine.answer("Is $t^2 = 3u^2$?", task="formulas", k=1).results
    assert result["score"] == round(wanted.score, 4)


def test_an_index_without_trees_is_searched_by_the_vectors_of_formulas(
    client: TestClient, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an earlier version built it."""
    assert client.get("/api/index").json()["formulas_by"] == "structure"
    monkeypatch.setattr(engine.catalog, "structured", None)
    (result,) = ask(client, query="What is $\\int_0^1 x\\,dx$?", task="formulas", k=1)["results"]
    assert result["formula"]["formula_id"] == "12:0"
    assert "match" not in result


def test_a_formula_that_cannot_be_read_is_said(client: TestClient) -> None:
    for query, message in (
        ("$ $ and words", "needs a formula in the query, between two dollar signs, of at most 4,000 characters"),
        ("Is $x^{2 prime?", "needs a formula in the query, between two dollar signs, of at most 4,000 characters"),
        ("$\\,$", "the first formula of the query cannot be read"),
    ):
        response = client.post("/api/search", json={"query": query, "task": "formulas"})
        assert response.status_code == 422
        assert message in response.json()["error"]


def test_a_heat_map_is_every_pair_and_its_rows_best_make_the_score(client: TestClient, engine: Engine) -> None:
    map_ = client.post("/api/heat-map", json={"query": QUERY, "post_id": "11"}).json()
    (result,) = engine.explain(QUERY, "11").results
    assert result.explanation is not None
    assert map_["similarities"] == [pytest.approx(row, abs=1e-4) for row in result.explanation.similarities.tolist()]
    assert [node["kind"] for node in map_["query"]] == ["formula", "formula", "sentence", "document"]
    assert [node["kind"] for node in map_["document"]] == ["formula"] * 2 + ["sentence"] * 3 + ["document"]
    assert map_["document"][4]["text"] == ["This is a contradiction."]
    best = [row[place] for row, place in zip(map_["similarities"], map_["best"], strict=True)]
    assert best == [max(row) for row in map_["similarities"]]
    assert map_["score"] == pytest.approx(sum(best), abs=1e-3)
    scores = {r["post_id"]: r["score"] for r in ask(client, query=QUERY, strategy="maxsim", k=5)["results"]}
    assert map_["score"] == scores["11"]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, {"11", "12", "13", "14", "15"}),
        ({"kind": "answer", "formulas": "without"}, {"13"}),
        ({"formulas": "with"}, {"11", "12", "14", "15"}),
        ({"kind": "question"}, set()),
        ({"query": QUERY + ' "lowest TERMS"'}, {"11"}),
        ({"query": QUERY + ' "Suppose $\\sqrt 2 = p/q$"'}, {"11"}),
        ({"query": QUERY + " -words -integral"}, {"11", "14", "15"}),
        ({"query": QUERY + ' -words "formula here"'}, set()),
        ({"query": QUERY + " -$\\sqrt 3$"}, {"11", "12", "13", "15"}),
        ({"query": QUERY + ' -"lowest TERMS" -"irrational"'}, {"12", "13", "15"}),
        ({"query": QUERY + ' "Is $\\sqrt2$ odd"'}, {"11", "12", "13", "14"}),
        ({"query": QUERY + ' "odd both"'}, set()),
        ({"query": QUERY + " -odd"}, {"15"}),
    ],
)
def test_filters_choose_among_the_candidates(client: TestClient, asked: dict[str, Any], found: set[str]) -> None:
    answer = ask(client, **({"query": QUERY, "k": 5} | asked))
    assert {result["post_id"] for result in answer["results"]} == found
    counts = (None, None) if asked == {} else (5, len(found))
    assert (answer["candidates"], answer["matching"]) == counts


def test_a_request_leaves_out_what_the_server_has_as_its_setting(engine: Engine, settings: Settings) -> None:
    usual = replace(settings, k=2, task="formulas", selection=Selection("answer", "without"))
    client = TestClient(create_app(engine, usual), base_url=HOME)
    assert ask(client, query=QUERY, task="answers")["matching"] == 1
    assert ask(client, query=QUERY, task="answers", formulas="with")["matching"] == 4
    assert len(ask(client, query=QUERY, formulas="")["results"]) == 2
    about = client.get("/api/index").json()["usual"]
    assert (about["k"], about["task"], about["kind"], about["formulas"]) == (2, "formulas", "answer", "without")


def test_filters_choose_among_formulas(client: TestClient) -> None:
    found = ask(client, query='$p^2 = 2q^2$ "contradiction"', task="formulas", k=5)
    assert {result["post_id"] for result in found["results"]} == {"11"}
    assert found["matching"] == len(found["results"]) < found["candidates"]


@pytest.mark.parametrize("task", ["answers", "formulas"])
@pytest.mark.parametrize("more", [{}, {"formulas": "with"}])
def test_pages_are_parts_of_the_whole_list(client: TestClient, task: str, more: dict[str, str]) -> None:
    whole = ask(client, query=QUERY, task=task, k=9, **more)
    assert (whole["start"], whole["more"]) == (0, False)
    pages = [ask(client, query=QUERY, task=task, k=2, start=start, **more) for start in range(0, 10, 2)]
    assert [result for page in pages for result in page["results"]] == whole["results"]
    assert [page["more"] for page in pages] == [len(whole["results"]) > start + 2 for start in range(0, 10, 2)]


@pytest.mark.parametrize("asked", [{"kind": "topic"}, {"formulas": "many"}, {"start": -1}, {"start": 1000}])
def test_an_impossible_selection_is_refused(client: TestClient, asked: dict[str, Any]) -> None:
    response = client.post("/api/search", json={"query": QUERY} | asked)
    assert response.status_code == 422
    assert next(iter(asked)) + "=" in response.json()["error"]


@pytest.mark.parametrize(
    ("query", "phrases", "excluded"),
    [
        ('"\\(' * 2500, 0, 0),
        ("$" * 9999, 0, 0),
        ('"a ' * 3333, 1666, 0),
        (" -ab" * 2500, 0, 2500),
        ('"$' * 5000, 1, 0),
    ],
)
def test_many_signs_of_filters_are_read(query: str, phrases: int, excluded: int) -> None:
    assert [len(found) for found in read_filters(query)[1:]] == [phrases, excluded]


@pytest.mark.parametrize(
    "query",
    [
        r"Solve \begin{equation} x^2 -ab = 0 \end{equation} for reals",
        r"\begin{cases} x & \text{if } y \\ -xy & \text{else} \end{cases}",
        r"It costs \$5 if $x -ab = 0$ holds",
        r"It costs $5. Is $x -ab = 0$ solvable?",
        r"Solve $\text{cost in \$} -ab = 0$ now",
        r'Let $f = \text{"a b"}$',
    ],
)
def test_a_sign_within_a_formula_is_no_filter(query: str) -> None:
    assert read_filters(query) == (query, (), ())
    assert read_filters(f'{query} -cheap "in $x$ words"') == (f"{query}  in $x$ words", ("in $x$ words",), ("cheap",))


def test_results_are_exported_with_stable_keys(client: TestClient) -> None:
    asked = {"query": QUERY, "k": 5}
    as_json = client.post("/api/export", json=asked | {"format": "json"})
    assert as_json.json()["results"] == ask(client, **asked)["results"]
    assert as_json.headers["content-disposition"] == 'attachment; filename="results.json"'
    as_bib = client.post("/api/export", json=asked | {"format": "bib"})
    assert as_bib.headers["content-type"] == "application/x-bibtex; charset=utf-8"
    keys = re.findall(r"@misc\{(.+),", as_bib.text)
    assert keys == [f"post:{result['post_id']}" for result in as_json.json()["results"]]
    assert "note = {post 14, answer to question 1, rank 1, score 4.0000}" in as_bib.text
    assert as_bib.text.count("{") == as_bib.text.count("}")
    later = client.post("/api/export", json=asked | {"format": "bib", "k": 2, "start": 2}).text
    assert re.findall(r"rank (\d+)", later) == ["3", "4"]
    formulas = client.post("/api/export", json={"query": "$t^2 = 3u^2$", "task": "formulas", "format": "bib"}).text
    assert "@misc{formula:11:1," in formulas
    assert "formula $p^2 = 2q^2$, post 11" in formulas
    refused = client.post("/api/export", json=asked | {"format": "xml"})
    assert (refused.status_code, "choose from: json, bib" in refused.json()["error"]) == (422, True)


@pytest.mark.parametrize(("latex", "written"), [("x=1\\ ", "$x=1\\ $"), ("x=1\\\\", "$x=1\\\\$")])
def test_the_last_dollar_of_an_exported_formula_closes_it(latex: str, written: str) -> None:
    formula = FormulaRef("7:0", latex)
    text = PlaceholderText(("FORMULA_0",), (formula,))
    entry = export.entry(Result(PostText("7", text, text, []), 1.0, formula=formula), 1)
    assert f"note = {{formula {written}, post 7" in entry
    assert f"title = {{{{{written}}}}}" in entry


@pytest.mark.skipif(shutil.which("bibtex") is None, reason="bibtex is not installed")
def test_bibtex_reads_every_exported_entry(client: TestClient, tmp_path: Path) -> None:
    """Of posts with unbalanced braces, too."""
    text = PlaceholderText(
        ("A {brace} \\ 100% & $5 #1 a_b~^ FORMULA_0 FORMULA_1",),
        (FormulaRef("1", "\\left\\{ x"), FormulaRef("2", "\\frac{1")),
    )
    odd = export.entry(Result(PostText("ein Ärger, {1}", text, text, []), 1.0), 1)
    entries = client.post("/api/export", json={"query": QUERY, "k": 5, "format": "bib"}).text
    (tmp_path / "found.bib").write_text(f"{odd}\n\n{entries}", encoding="utf-8")
    (tmp_path / "found.aux").write_text("\\citation{*}\n\\bibstyle{unsrt}\n\\bibdata{found}\n", encoding="utf-8")
    done = subprocess.run(["bibtex", "found"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "Warning" not in done.stdout
    assert (tmp_path / "found.bbl").read_text(encoding="utf-8").count("\\bibitem") == 6


@pytest.mark.parametrize("parser", ["embedded 1 en_core_web_sm 3.8.0", "embedded 3 en_core_web_lg 3.8.0", "amrlib 1 b"])
def test_the_index_says_that_another_parser_read_its_posts(
    parser: str, client: TestClient, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = engine.catalog.parser
    assert client.get("/api/index").json()["note"] == ""
    monkeypatch.setattr(engine.catalog, "parser", parser)
    note = client.get("/api/index").json()["note"]
    assert note == f"the posts were parsed by {parser}, but the query is parsed by {own}"


def test_a_whole_post(client: TestClient) -> None:
    post = client.get("/api/posts/11").json()
    assert post["sentences"][2] == ["This is a contradiction."]
    assert client.get("/api/posts/none/such").status_code == 404


def test_a_post_that_is_not_searched_has_no_heat_map(client: TestClient) -> None:
    """The question of an answer is shown, but it has no vectors."""
    assert client.get("/api/posts/1").status_code == 200
    refused = client.post("/api/heat-map", json={"query": QUERY, "post_id": "1"})
    assert (refused.status_code, refused.json()) == (404, {"error": "the index holds no post 1 (1 such)"})


def test_the_index_says_what_it_can_do(client: TestClient) -> None:
    about = client.get("/api/index").json()
    assert (about["posts"], about["backend"], about["tasks"]) == (5, "exact", ["answers", "formulas"])
    assert about["strategies"] == [{"strategy": name, "exact": True} for name in STRATEGIES]
    assert about["usual"] == {
        "task": "answers",
        "strategy": "maxsim",
        "exact": True,
        "k": 5,
        "kind": "",
        "formulas": "",
    }


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"query": ""}, "the query is empty"),
        ({"query": " \n"}, "the query is empty"),
        ({"query": " -ring -field"}, "the query only excludes results, so nothing is searched for; write words"),
        ({"query": "-" + "x" * 9000}, f"as in 'WORDS -{'x' * 39}'"),
        ({"query": '-"the book"'}, "before the first exclusion, as in 'WORDS -\"the book\"'"),
        ({"query": "-$x$", "task": "formulas"}, "before the first exclusion, as in 'WORDS -$x$'"),
        ({"query": "x" * 100_000}, "the query has 100,000 characters, but at most 10,000 are read"),
        ({"query": "$x$", "strategy": "best"}, "unknown strategy 'best'; choose from: single_vector"),
        ({"query": "$x$", "exact": False}, "the backends approximate and qdrant can"),
        ({"query": "$x$", "task": "proofs"}, "unknown task 'proofs'; choose from: answers, formulas"),
        ({"query": "no formula, only words", "task": "formulas"}, "needs a formula"),
        ({"query": "$x$", "k": 0}, "k=0; from 1 to 1,000"),
        ({"query": "$x$", "k": "many"}, "k: Input should be a valid integer"),
        ({"query": "$x$", "k": "5"}, "k: Input should be a valid integer"),
        ({"query": "$x$", "k": 2.5}, "k: Input should be a valid integer"),
        ({"query": "$x$", "k": True}, "k: Input should be a valid integer"),
        ({"query": "$x$", "start": "0"}, "start: Input should be a valid integer"),
        ({"query": "$x$", "exact": 1}, "exact: Input should be a valid boolean"),
        ({}, "query: Field required"),
    ],
)
def test_what_cannot_be_answered_is_one_message(client: TestClient, asked: dict[str, Any], message: str) -> None:
    response = client.post("/api/search", json=asked)
    assert response.status_code == 422
    assert message in response.json()["error"]


@pytest.mark.parametrize(
    "query", ["$x^2$", "$$", "$", "\\", "\x00", "\ud800 $a$", "\u202e$\\frac$", "$" * 999, "é" * 9_999]
)
def test_no_query_is_the_end_of_the_server(client: TestClient, query: str) -> None:
    body = {"query": query}
    response = client.post("/api/search", content=json.dumps(body), headers={"content-type": "application/json"})
    assert response.status_code in (200, 422)
    assert client.get("/api/index").status_code == 200


def test_a_whole_number_may_be_written_with_a_point(client: TestClient) -> None:
    """It is an integer for JSON Schema, in which the interface is described."""
    assert ask(client, query="$a$", k=2.0, start=1.0)["results"] == ask(client, query="$a$", k=2, start=1)["results"]


def test_a_query_of_many_formulas_is_answered_with_the_first_matches(client: TestClient) -> None:
    results = ask(client, query="$a$ " * 150, k=5)["results"]
    assert {len(result["matches"]) for result in results} == {answers.MAX_MATCHES}
    assert {result["more_matches"] for result in results} == {150 + 2 - answers.MAX_MATCHES}  # a sentence, the whole


def test_a_heat_map_too_large_to_be_shown_is_refused(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MAX_CELLS", 2)
    response = client.post("/api/heat-map", json={"query": QUERY, "post_id": "11"})
    assert response.status_code == 422
    assert "ask with a shorter query" in response.text


def test_an_unknown_post_has_no_heat_map(client: TestClient) -> None:
    response = client.post("/api/heat-map", json={"query": "$x$", "post_id": "99"})
    assert response.status_code == 404
    assert response.json() == {"error": "the index has no post '99'; give the id of a search result"}


@pytest.mark.parametrize("query", ["zzzqqq", "x", "\U0001f600", "{" * 5000, "$\\mathfrak{Q}$"])
def test_a_query_without_a_known_word_finds_nothing(client: TestClient, query: str) -> None:
    response = client.post("/api/search", json={"query": query})
    assert response.status_code == 422
    assert "the model knows nothing in this query" in response.json()["error"]


def test_it_says_what_of_a_query_the_model_knows(client: TestClient) -> None:
    found = ask(client, query="Both zzzqqq and $\\sqrt2$ are irrational.")
    assert found["read"] == {"known": ["irrational"], "unknown": ["zzzqqq", "Both"], "formulas": 1}


@pytest.mark.parametrize("name", ["post_id", "query", "task", "strategy"])
def test_half_of_a_surrogate_pair_is_answered_with_a_message(client: TestClient, name: str) -> None:
    path = "/api/heat-map" if name == "post_id" else "/api/search"
    body = json.dumps({"query": QUERY, "post_id": "11", name: "\ud800"})
    response = client.post(path, content=body, headers={"content-type": "application/json"})
    assert response.status_code == (404 if name == "post_id" else 422)
    assert response.json()["error"]


@pytest.mark.parametrize(
    ("headers", "status", "message"),
    [
        ({"host": "evil.example"}, 403, "does not go by the name 'evil.example'"),
        ({"host": "localhost.evil.example:8000"}, 403, "does not go by the name"),
        ({"host": ""}, 403, "does not go by the name ''"),
        ({"origin": "http://evil.example"}, 403, "requests of other sites"),
        ({"origin": "http://127.0.0.1:9000"}, 403, "requests of other sites"),
        ({"origin": "null"}, 403, "requests of other sites"),
        ({"sec-fetch-site": "cross-site"}, 403, "requests of other sites"),
        ({"content-type": "text/plain"}, 415, "send application/json"),
    ],
)
def test_other_sites_are_not_answered(client: TestClient, headers: dict[str, str], status: int, message: str) -> None:
    response = client.post(
        "/api/search", content=b'{"query": "$x$"}', headers={"content-type": "application/json"} | headers
    )
    assert response.status_code == status
    assert message in response.json()["error"]


def test_a_request_with_two_hosts_is_refused(client: TestClient) -> None:
    assert client.get("/", headers=[("host", "localhost"), ("host", "evil.example")]).status_code == 403
    assert client.get("/", headers=[("host", "localhost")]).status_code == 200


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "[::1]:8000", "192.168.1.7", "my.machine"])
def test_our_own_names_and_addresses_are_answered(engine: Engine, settings: Settings, host: str) -> None:
    client = TestClient(create_app(engine, settings, names=["My.Machine"]), base_url=HOME)
    headers = {"host": host, "origin": f"http://{host}", "sec-fetch-site": "same-origin"}
    assert client.get("/", headers=headers).status_code == 200
    assert client.post("/api/search", json={"query": "$x$"}, headers=headers).status_code == 200


def test_a_long_body_is_refused_also_when_it_does_not_say_how_long_it_is(client: TestClient) -> None:
    headers = {"content-type": "application/json"}
    whole = client.post("/api/search", content=b" " * (MAX_BODY + 1), headers=headers)
    pieces = client.post("/api/search", content=iter([b" " * MAX_BODY, b" "]), headers=headers)
    assert (whole.status_code, pieces.status_code) == (413, 413)
    assert "longer than 1,048,576 bytes" in pieces.json()["error"]


@pytest.mark.parametrize(
    "body", [b'{"query": "\xff\xfe"}', b"\xff", b"", b"{", b"[" * 100_000, b'{"query": {"a": 1}}', b"null"]
)
def test_a_body_that_is_no_request_is_refused_with_a_message(client: TestClient, body: bytes) -> None:
    response = client.post("/api/search", content=body, headers={"content-type": "application/json"})
    assert response.status_code in (400, 422)
    assert response.json()["error"]


@pytest.mark.parametrize("path", ["/api/posts/%ff%fe", "/%ff", "/api/posts/%00", "/api/posts/" + "%2e%2e%2f" * 5])
def test_an_address_that_is_no_text_is_refused(client: TestClient, path: str) -> None:
    assert client.get(path).status_code in (404, 422)


@pytest.mark.parametrize(
    ("path", "methods", "message"),
    [
        ("/api/search", "POST", "use POST"),
        ("/api/index", "GET, HEAD", "use GET or HEAD"),
        ("/api/posts/11", "GET, HEAD", "use GET or HEAD"),
        ("/", "GET, HEAD", "use GET or HEAD"),
        ("/katex/katex.min.js", "GET, HEAD", "use GET or HEAD"),
    ],
)
def test_another_method_is_answered_with_those_of_the_path(
    client: TestClient, path: str, methods: str, message: str
) -> None:
    for method in {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"} - set(methods.split(", ")):
        response = client.request(method, path, json={} if method == "POST" else None)
        assert (response.status_code, response.headers["allow"]) == (405, methods)
        if method != "HEAD":
            assert response.json() == {"error": f"{path}: {method} is not answered; {message}"}


@pytest.mark.parametrize("path", ["/api/health", "/api/index", "/api/posts/11", "/api/metrics", "/api/openapi.json"])
def test_head_is_answered_as_get_without_a_body(client: TestClient, path: str) -> None:
    response = client.head(path)
    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["content-type"] == client.get(path).headers["content-type"]


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_path_that_the_interface_lacks_is_not_found(client: TestClient, method: str) -> None:
    assert client.request(method, "/api/nothing", json={"query": QUERY}).status_code == 404


def test_a_body_that_is_not_json_is_refused_with_the_place_of_its_fault(client: TestClient) -> None:
    body = {"content": b'{"query": "a" "b"}', "headers": {"content-type": "application/json"}}
    message = "the body is not JSON: Expecting ',' delimiter, at character 14"
    assert client.post("/api/search", **body).json() == {"error": message}


@pytest.mark.parametrize("path", ["search", "export", "compare", "heat-map"])
def test_an_unknown_key_is_refused(client: TestClient, path: str) -> None:
    more = {"post_id": "11"} if path == "heat-map" else {}
    response = client.post(f"/api/{path}", json={"query": "group", "kk": 3} | more)
    assert response.status_code == 422
    assert response.json() == {"error": "unknown key 'kk'; /api/openapi.json lists the keys of each request"}


def test_the_description_of_the_interface_has_its_errors_and_limits(client: TestClient) -> None:
    described = client.get("/api/openapi.json").json()
    schemas = described["components"]["schemas"]
    assert "HTTPValidationError" not in schemas
    operations = [one for path in described["paths"].values() for one in path.values()]
    for operation in operations:
        for status in ("4XX", "5XX"):
            schema = operation["responses"][status]["content"]["application/json"]["schema"]
            assert schema == {"$ref": "#/components/schemas/Refusal"}
    assert list(schemas["Refusal"]["properties"]) == ["error"]
    keys = schemas["SearchRequest"]["properties"]
    beyond = [(name, keys[name]["minimum"] - 1) for name in ("k", "start")]
    beyond += [(name, keys[name]["maximum"] + 1) for name in ("k", "start")]
    for name, value in [*beyond, ("kind", "Kind")]:
        assert value not in keys[name].get("enum", [])
        assert client.post("/api/search", json={"query": "group", name: value}).status_code == 422
    for name in ("k", "start"):
        for value in (keys[name]["minimum"], keys[name]["maximum"]):
            assert client.post("/api/search", json={"query": QUERY, name: int(value)}).status_code == 200
    assert list(described["paths"]["/api/metrics"]["get"]["responses"]["200"]["content"]) == ["text/plain"]


@pytest.mark.parametrize("path", ["/", "/page.css", "/katex/katex.min.js", "/api/index", "/nothing", "/api/posts/99"])
def test_every_response_tells_the_browser_to_load_nothing_from_elsewhere(client: TestClient, path: str) -> None:
    response = client.get(path)
    for name, value in HEADERS.items():
        assert response.headers[name] == value
    assert "unsafe" not in HEADERS["Content-Security-Policy"]


def test_the_frame_of_the_formula_editor_may_set_styles_and_run_only_our_scripts(client: TestClient) -> None:
    policy = client.get("/editor.html").headers["Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["style-src-attr"] == "'unsafe-inline'"
    assert {name: rules[name] for name in ("default-src", "script-src", "style-src", "frame-ancestors")} == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "frame-ancestors": "'self'",
    }
    assert "connect-src" not in rules
    program = client.get("/mathlive/mathlive.min.mjs")
    assert (program.status_code, program.headers["content-type"].partition(";")[0]) == (200, "text/javascript")


@pytest.mark.parametrize("path", ["/../app.py", "/%2e%2e/app.py", "/katex/%2e%2e/app.py", "/..%2fapp.py"])
def test_files_beside_the_page_are_not_served(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_the_page_names_nothing_from_elsewhere() -> None:
    files: list[Path] = [path for path in PAGE.iterdir() if path.suffix in (".html", ".css", ".js", ".svg")]
    assert len(files) >= 7
    for path in files:
        text = path.read_text(encoding="utf-8")
        for name in ("http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"):  # which nothing loads
            text = text.replace(name, "")
        assert not re.search(r"https?://|//cdn", text), path
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text), path
        if path.suffix == ".html":
            assert not re.search(r"<[^>]+\s(?:on\w+|style)=", text), path


def test_a_fault_of_the_server_is_not_spelled_out(
    client: TestClient, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr(Engine, "answer", fail)
    response = client.post("/api/search", json={"query": "$x$"})
    assert response.status_code == 500
    assert "secret" not in response.text
    assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_health_and_metrics_count_requests(client: TestClient) -> None:
    ask(client, query=QUERY, k=1)
    client.post("/api/search", json={"query": ""})
    client.get("/api/posts/11")
    client.get("/nothing")
    health = client.get("/api/health").json()
    assert (health["status"], health["posts"], health["waiting"]) == ("ok", 5, 0)
    response = client.get("/api/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = response.text.splitlines()
    for path, status in (("/api/search", 200), ("/api/search", 422), ("/api/posts/", 200), ("other", 404)):
        assert f'mathamr_requests_total{{path="{path}",status="{status}"}} 1' in lines
    assert 'mathamr_request_seconds_bucket{path="/api/search",le="+Inf"} 2' in lines
    assert "mathamr_waiting 0" in lines


def test_a_log_has_a_line_for_each_request_and_no_query(
    engine: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    app = create_app(engine, settings, log=lines.append)
    client = TestClient(app, base_url=HOME, raise_server_exceptions=False)
    ask(client, query=QUERY, k=1)
    client.get("/irrational")
    client.get("/api/index", headers={"host": "evil.example"})
    monkeypatch.setattr(Engine, "answer", lambda *_, **__: 1 // 0)
    client.post("/api/search", json={"query": QUERY})
    records = [json.loads(line) for line in lines]
    assert [(one["method"], one["path"], one["status"]) for one in records] == [
        ("POST", "/api/search", 200),
        ("GET", "other", 404),
        ("GET", "/api/index", 403),
        ("POST", "/api/search", 500),
    ]
    assert "irrational" not in "".join(lines)
    assert all(one["seconds"] >= 0 and one["time"].endswith("+00:00") for one in records)


def test_more_questions_than_there_is_room_for_are_sent_away(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    going, done = threading.Event(), threading.Event()
    answer = Engine.answer

    def wait(*arguments: Any, **more: Any) -> Any:
        going.set()
        assert done.wait(60)
        return answer(*arguments, **more)

    monkeypatch.setattr(Engine, "answer", wait)
    with ThreadPoolExecutor(web_app.MAX_WAITING + 3) as pool:
        asking = [
            pool.submit(client.post, "/api/search", json={"query": "$x$"}) for _ in range(web_app.MAX_WAITING + 3)
        ]
        try:
            refused = list(islice(as_completed(asking, timeout=60), 3))
        finally:
            done.set()
        statuses = sorted(request.result().status_code for request in asking)
    assert going.is_set()
    assert statuses == [200] * web_app.MAX_WAITING + [503] * 3
    assert all(request.result().headers["Retry-After"] == "1" for request in refused)
    assert "questions are waiting already" in refused[0].result().json()["error"]
    assert ask(client, query="$x$")["results"]


@pytest.fixture
def two(engine: Engine, settings: Settings) -> Iterator[TestClient]:
    """A server of the tiny index and of another system, ``fixed``, over the same posts."""
    other = SystemEngine(Fixed("12", "15", "14"), engine.catalog.texts, system="fixed of test", posts=3)
    more = [(other, replace(settings, index=Path("fixed")))]
    with TestClient(create_app(engine, settings, more=more), base_url=HOME) as client:
        yield client


def test_two_indexes_are_compared_by_the_ranks_of_their_results(two: TestClient) -> None:
    found = two.post("/api/compare", json={"query": QUERY, "k": 2}).json()
    alone = {name: ask(two, query=QUERY, k=5, index=name)["results"] for name in ("index", "fixed")}
    places = {name: [result["post_id"] for result in results] for name, results in alone.items()}
    assert places["fixed"] == ["12", "15", "14"]
    assert [(own["index"], own["system"]) for own in found["lists"]] == [("index", "graph"), ("fixed", "fixed of test")]
    for own, other in zip(found["lists"], ("fixed", "index"), strict=True):
        assert [result["post_id"] for result in own["results"]] == places[own["index"]][:2]
        for result in own["results"]:
            wanted = places[other].index(result["post_id"]) + 1 if result["post_id"] in places[other] else None
            assert result["ranks"] == {other: wanted}
    assert found["shared"] == len(set(places["index"][:2]) & set(places["fixed"][:2]))
    assert found["depth"] == 100
    assert found["lists"][0]["results"][0]["matches"]


def test_a_request_names_the_index_that_it_is_about(two: TestClient) -> None:
    about = two.get("/api/index").json()
    assert about["name"] == "index"
    assert [(one["name"], one["posts"]) for one in about["indexes"]] == [("index", 5), ("fixed", 3)]
    other = two.get("/api/index", params={"index": "fixed"}).json()
    assert (other["name"], other["system"], other["explains"]) == ("fixed", "fixed of test", False)
    assert two.get("/api/posts/14", params={"index": "fixed"}).json()["post_id"] == "14"
    refused = two.post("/api/heat-map", json={"query": QUERY, "post_id": "14", "index": "fixed"})
    assert "cannot explain results" in refused.json()["error"]


def test_an_index_of_any_system_is_filtered_and_paged(two: TestClient) -> None:
    def found(**asked: Any) -> tuple[list[str], bool]:
        answer = ask(two, **{"query": QUERY, "index": "fixed", "k": 1} | asked)
        return [result["post_id"] for result in answer["results"]], answer["more"]

    assert [found(start=start) for start in range(4)] == [(["12"], True), (["15"], True), (["14"], False), ([], False)]
    assert found(query="number -integral") == (["15"], True)
    assert found(query="number -integral", start=1) == (["14"], False)


@pytest.mark.parametrize("asked", [{"strategy": "maxsim"}, {"exact": False}])
def test_a_strategy_for_an_index_without_strategies_is_refused(two: TestClient, asked: dict[str, Any]) -> None:
    response = two.post("/api/search", json={"query": QUERY, "index": "fixed", **asked})
    (name,) = asked
    assert response.json() == {"error": f"an index of fixed of test has no strategies; leave out {name}"}
    assert two.post("/api/compare", json={"query": QUERY, **asked, "exact": True}).status_code == 200


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"index": "index"}, "unknown key 'index'"),
        ({"indexes": []}, "a comparison needs two different systems; given: none"),
        ({"indexes": ["index", "index"]}, "a comparison needs two different systems; given: index"),
        ({"indexes": ["index", "nowhere"]}, "unknown index 'nowhere'; choose from: index, fixed"),
        ({"start": 5}, "leave start out"),
        ({"task": "formulas"}, "index fixed: task=formulas needs the index of a graph model"),
        ({"strategy": "maxsim", "exact": False}, "index index: the backend exact cannot do approximate maxsim"),
        ({"k": 0}, "k=0; from 1 to"),
        ({"k": -2}, "k=-2; from 1 to"),
        ({"k": 5000}, "k=5000; from 1 to"),
    ],
)
def test_an_impossible_comparison_is_refused(two: TestClient, asked: dict[str, Any], message: str) -> None:
    response = two.post("/api/compare", json={"query": "Is $x$ odd?", **asked})
    assert response.status_code == 422
    assert message in response.json()["error"]
