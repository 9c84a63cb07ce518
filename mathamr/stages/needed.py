"""Posts of a run: the posts of its training pairs, and the searched posts.

The collection here has a judged answer, its question, and a pair to learn from; nothing else is parsed:

>>> posts = [Post("1", "question"), Post("2", "answer", parent_id="1"), Post("3", "answer", parent_id="1"),
...     Post("4", "question"), Post("5", "answer", parent_id="4"), Post("6", "question")]
>>> needed = NeededPosts(learned=frozenset({"4", "5"}), searched=with_questions(posts, {"2"}))
>>> sorted(needed.searched), sorted(needed.all)
(['1', '2'], ['1', '2', '4', '5'])

In the regime ``judged`` a part of a large collection is searched, so ``data.posts=needed`` saves most of the parsing:
judged answers, their questions, and the pairs of the run, whose answers are the pool of mined negatives. In the regimes
``full`` and ``mini`` every answer is searched, so the needed posts are all posts. What is learned from does not depend
on judgments, so vocabularies and models stay as they are when judgments change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

from graphs.corpus.corpus import Corpus
from graphs.corpus.post import Post
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError, Failure
from graphs.formulas.published import posts_with_visual_ids
from graphs.shared_files import read_json, write_json
from mathamr.stages.console import Console, Stage
from mathamr.stages.data.post_files import PostFiles
from mathamr.stages.data.versions import graphs_version
from mathamr.stages.settings import DataSettings, JobSettings
from mathamr.stages.topic_sets import TopicSet

Extent = Literal["needed", "all"]


@dataclass(frozen=True)
class NeededPosts:
    """Ids of the posts that models learn from and of those that are searched, which may overlap."""

    learned: frozenset[str]
    searched: frozenset[str]

    @cached_property
    def all(self) -> frozenset[str]:
        """Ids of all posts."""
        return self.learned | self.searched

    @cached_property
    def added(self) -> frozenset[str]:
        """Ids of the posts that are searched but not used for training."""
        return self.searched - self.learned


def extent_of(data: DataSettings) -> Extent:
    """Return which posts a configuration parses: by default the needed ones, which in ``full`` and ``mini`` are all.

    Raises:
        ConfigError: another value of ``data.posts`` than needed or all.
    """
    given = data.posts
    if given is not None and given not in get_args(Extent):
        raise ConfigError(f"data.posts={given} is not one of {', '.join(get_args(Extent))}")
    return "needed" if data.regime == "judged" and given != "all" else "all"


def with_questions(
    posts: Iterable[Post | Failure], answers: Collection[str], formula_ids: Collection[str] = frozenset()
) -> frozenset[str]:
    """Return those of the answers that are among ``posts``, and the questions among them that they answer.

    Args:
        formula_ids: posts that have one of these formulas count as answers.
    """
    post_ids: set[str] = set()
    parents: set[str] = set()
    questions: set[str] = set()
    for post in posts:
        if not isinstance(post, Post):
            continue
        if post.kind == "question":
            questions.add(post.post_id)
        if post.post_id in answers or (
            formula_ids and any(formula.formula_id in formula_ids for formula in extract(post).formulas)
        ):
            post_ids.add(post.post_id)
            if post.parent_id is not None:
                parents.add(post.parent_id)
    return frozenset(post_ids | (parents & questions))


def needed_posts(
    config: JobSettings,
    corpus: Corpus,
    topic_sets: Sequence[TopicSet],
    learned: frozenset[str],
    folder: Path,
    console: Console,
) -> NeededPosts | None:
    """Return the posts that a configuration needs; None: all posts.

    Args:
        learned: posts that the configuration learns from; not looked at where all posts are needed.
        folder: what experiments share of the collection.
    """
    if extent_of(config.data) == "all":
        if config.data.posts == "needed":
            console.once(
                f"  data.posts=needed: the regime {config.data.regime} searches every answer, so all posts are needed; "
                "data.regime=judged needs fewer"
            )
        return None
    first = {judgment.doc_id for topic_set in topic_sets if topic_set.task == 1 for judgment in topic_set.judgments}
    second = {judgment.doc_id for topic_set in topic_sets if topic_set.task == 2 for judgment in topic_set.judgments}
    if (example := config.example.post) is not None:
        first.add(example)
    return NeededPosts(learned, searched_posts(corpus, first, second, folder, console))


def searched_posts(
    corpus: Corpus, answers: Iterable[str], visual_ids: Iterable[str], folder: Path, console: Console
) -> frozenset[str]:
    """Return the ids of answers, of posts with formulas of some visual ids, and of their questions.

    Finding them takes a pass over the headers of posts. The result is kept in ``folder``, for this version of
    ``graphs/``.
    """
    judged, judged_visual_ids = frozenset(answers), frozenset(visual_ids)
    found_by = [graphs_version(), "", *sorted(judged), "", *sorted(judged_visual_ids)]
    digest = hashlib.sha256("\0".join(found_by).encode()).hexdigest()[:12]
    kept = folder / f"searched-{digest}.json"
    if (known := read_json(kept)) is not None:
        return frozenset(known["posts"])
    wanted, formula_ids = judged, frozenset[str]()
    if judged_visual_ids and (files := corpus.formulas()) is not None:
        with console.stage("posts with judged formulas", unit="formulas") as advance:
            wanted |= posts_with_visual_ids(files, judged_visual_ids, advance)
    elif judged_visual_ids:
        formula_ids = judged_visual_ids  # the collection publishes no visual ids: a formula's own id is judged
    kept_posts = PostFiles(corpus, folder, console)
    posts = kept_posts.posts() if formula_ids else kept_posts.outlines()  # without texts a post has no formulas
    with console.stage("questions of judged answers", unit="posts") as advance:
        needed = with_questions(_counted(posts, advance), wanted, formula_ids)
    folder.mkdir(parents=True, exist_ok=True)
    if lost := len(judged - needed):
        console.say(f"  {lost:,} of {len(judged):,} judged posts are not in the collection")
    write_json(kept, {"posts": sorted(needed)})
    return needed


def _counted(posts: Iterable[Post | Failure], advance: Stage) -> Iterator[Post | Failure]:
    for post in posts:
        yield post
        advance(1)
