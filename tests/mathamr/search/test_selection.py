"""Filters of results: what a typed query requires and excludes, and which posts pass."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import cast

import pytest

from graphs.corpus.post import PlaceholderText, Post, PostKind
from graphs.errors import RetrievalError
from graphs.stores.posts import PostTexts
from mathamr.search import selection
from mathamr.search.selection import CANDIDATES, MAX_FILTERS, Selection, read_filters, typed

BODY = "Gau\u00df showed that primes are odd."


class Texts:
    """Posts with the same text."""

    def posts(self, post_ids: Sequence[str]) -> dict[str, Post]:
        return {post_id: Post(post_id, "answer", body=BODY, markup="text") for post_id in post_ids}


def matching(chosen: Selection, count: int) -> tuple[int | None, int | None]:
    """Return the number of candidates among ``count`` results, and of those that pass."""
    found = [(str(number), 1.0) for number in range(count)]
    page = chosen.page(found, 5, itemgetter(0), cast(PostTexts, Texts()))
    return page.candidates, page.matching


@pytest.mark.parametrize(
    ("query", "read"),
    [
        ('y" -"second derivative"', ('y"', (), ("second derivative",))),
        ('Is f" = g -"initial value" unique?', ('Is f" = g  unique?', (), ("initial value",))),
        (
            'Is (fg)" = 0 and $h$" = 1 for "some value"',
            ('Is (fg)" = 0 and $h$" = 1 for some value', ("some value",), ()),
        ),
        ('a 5" pipe of "cast iron" or 6" one', ('a 5" pipe of cast iron or 6" one', ("cast iron",), ())),
        ('roots " = " -"the book"', ("roots  =", (), ("the book",))),
        ('roots " of -"the book"', ('roots " of', (), ("the book",))),
        ('roots of f(x)-"a b"', ("roots of f(x)-a b", ("a b",), ())),
        ('roots "?!" of unity', ("roots ?! of unity", (), ())),
        ("primes -“the book” “at most”", ("primes  at most", ("at most",), ("the book",))),
        ("primes -„das Buch“", ("primes", (), ("das Buch",))),
        ('定理"有限环"的证明', ("定理有限环的证明", ("有限环",), ())),
        ("关于“有限环”的定理", ("关于有限环的定理", ("有限环",), ())),
        ("see“finite ring” or $R$“$p$-group”", ("see finite ring or $R$ $p$-group", ("finite ring", "$p$-group"), ())),
        ('is α" = β" -"a b"', ('is α" = β"', (), ("a b",))),
        ("f“ = g“ -„das Buch“", ("f“ = g“", (), ("das Buch",))),
    ],
)
def test_quotation_marks_are_filters_where_they_enclose_words(
    query: str, read: tuple[str, tuple[str, ...], tuple[str, ...]]
) -> None:
    assert read_filters(query) == read


def test_words_are_compared_without_case_also_where_it_changes_letters() -> None:
    assert matching(Selection(phrases=("GAUSS SHOWED",)), 3) == (3, 3)
    assert matching(Selection(without=("gau\u00df",)), 3) == (3, 0)


@pytest.mark.parametrize("kind", ["answer", "question"])
def test_posts_of_another_kind_do_not_pass(kind: PostKind) -> None:
    kinds: tuple[PostKind, ...] = ("answer", "question")
    passed = [one for one in kinds if Selection(kind=kind).admits(Post("1", one, body=BODY, markup="text"))]
    assert passed == [kind]


def test_the_title_of_a_question_is_read_in_its_own_markup() -> None:
    question = Post("1", "question", title="Is a &lt; b &amp; c prime?", body="No formula.", markup="html")
    answer = Post("2", "answer", body=BODY, markup="text", parent_id="1")
    assert Selection(phrases=("b & c prime",), without=("amp", "lt", "formula")).admits(answer, question)


def test_filters_apply_to_the_best_results_alone() -> None:
    """Some systems rank more posts than are asked for."""
    assert matching(Selection(kind="answer"), CANDIDATES + 5) == (CANDIDATES, CANDIDATES)


def test_the_words_of_filters_are_read_once_for_all_posts(monkeypatch: pytest.MonkeyPatch) -> None:
    read, extract = [], selection.extract

    def counted(post: Post) -> PlaceholderText:
        read.append(post.body)
        return extract(post)

    monkeypatch.setattr(selection, "extract", counted)
    assert matching(Selection(phrases=("primes are",), without=("even", "a composite number")), 40) == (40, 40)
    assert len([body for body in read if body != BODY]) <= 3


def test_a_query_of_too_many_filters_is_refused() -> None:
    query = "primes" + " -even" * (MAX_FILTERS - 1) + ' "at most"'
    assert typed(query)[1].phrases == ("at most",)
    with pytest.raises(RetrievalError, match=f"{MAX_FILTERS + 1} phrases and exclusions, but at most {MAX_FILTERS}"):
        typed(f"{query} -odd")
