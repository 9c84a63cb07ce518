"""Posts of a collection, read once and kept: post_headers.db (all but texts) and posts.db (texts).

    files = PostFiles(open_corpus("mathdocs"), Path("outputs/shared/mathdocs-b1d7c2"), console)
    files.read(texts=True)                     # one pass over the collection makes both files
    list(files.outlines())                     # all posts without texts: of pairs, searched posts, leaks
    list(files.posts(frozenset({"7"})))        # a post with its text: graphs are made from it

Where all texts are wanted, the collection is read once; where some are, twice: their headers tell which. Later runs,
and other processes, read the files. Posts that cannot be read are listed in a table, ``*.failures.tsv``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from graphs.corpus.corpus import Completed, Documents, answers_ask
from graphs.corpus.post import Post
from graphs.corpus.record_ids import identified
from graphs.counts import counted
from graphs.errors import Failure, encodable
from graphs.shared_files import locked
from graphs.stores import post_headers
from graphs.stores import posts as post_texts
from graphs.stores.post_headers import PostHeaders
from graphs.stores.posts import PostTexts
from graphs.whole_file import write_whole
from mathamr.stages.console import Console
from mathamr.stages.data.versions import graphs_version, is_done


class PostFiles:
    """Posts of ``corpus``, kept in ``folder``; one of several processes reads them, others wait."""

    def __init__(self, corpus: Documents, folder: Path, console: Console) -> None:
        self._corpus, self._folder, self._console = corpus, folder, console
        self._headers, self._texts = folder / "post_headers.db", folder / "posts.db"
        self._done = self._texts.with_suffix(".done")

    # -- reading -----------------------------------------------------------------------------------------------------

    def read(self, *, texts: bool) -> None:
        """Make post_headers.db, with ``texts`` also posts.db of all posts; raise CorpusError if they cannot be read."""
        if not self._has_headers() or (texts and not self.has_all_texts):
            self._make(texts=texts)
        self._say_broken()

    def _make(self, *, texts: bool) -> None:
        with self._alone():
            wants_texts = texts and not self.has_all_texts
            if wants_texts:
                with self._recorded() as posts:
                    build_texts(posts, self._texts, self._console, completing=self._completing())
                self._done.write_text(graphs_version(), encoding="utf-8")
            elif not self._has_headers():
                with self._recorded() as posts, self._console.stage("posts read", unit="posts") as advance:
                    for _ in posts:
                        advance(1)

    def _say_broken(self) -> None:
        """Print how many posts cannot be read; list them in posts.failures.tsv."""
        with PostHeaders(self._headers) as kept:
            number = kept.broken()
            if not number:
                return
            listed = self._headers.with_name("posts.failures.tsv")
            first = next(kept.failures())
            if not listed.exists():
                write_table(kept.failures(), listed)
        self._console.once(
            f"  left out: {counted(number, 'post')} that cannot be read, the first: {first.message}; all: {listed}"
        )

    def _has_headers(self) -> bool:
        return post_headers.is_whole(self._headers, version=graphs_version())

    @property
    def has_all_texts(self) -> bool:
        """Return whether posts.db has the texts of all posts."""
        return is_done(self._done, self._texts, self._console)

    @contextmanager
    def _recorded(self) -> Iterator[Iterator[Post | Failure]]:
        """Yield the posts of the collection and record their headers."""
        answers = answers_ask(self._corpus)
        with post_headers.recording(self._headers, answers=answers, version=graphs_version()) as record:
            yield _each(identified(self._read(), texts=True), record)
        self._headers.with_name("posts.failures.tsv").unlink(missing_ok=True)  # of an earlier file

    def _read(self) -> Iterator[Post | Failure]:
        completing = self._completing()
        return self._corpus.posts() if completing is None else completing.posts_as_read()

    def _completing(self) -> Completed | None:
        return self._corpus if isinstance(self._corpus, Completed) else None

    def _alone(self) -> AbstractContextManager[None]:
        return held(self._folder, ".posts.lock", self._console)

    # -- posts without texts -----------------------------------------------------------------------------------------

    def outlines(self) -> Iterator[Post | Failure]:
        """Yield all posts without texts, and failures of reading, in the order of the collection."""
        with self.headers() as kept:
            yield from kept.posts()

    @contextmanager
    def headers(self) -> Iterator[PostHeaders]:
        """Open the headers of the posts; the file is made where it is missing."""
        self.read(texts=False)
        with PostHeaders(self._headers) as kept:
            yield kept

    # -- texts -------------------------------------------------------------------------------------------------------

    def texts(self, wanted: frozenset[str] | None = None) -> Path:
        """Return posts.db with the wanted posts, as far as the collection has them; None: all."""
        if wanted is None:
            self.read(texts=True)
            return self._texts
        if self.has_all_texts or not wanted.difference(self.text_ids()):
            return self._texts
        with self.headers() as kept:
            known = kept.known(wanted)
        with self._alone():
            if self.has_all_texts or not (missing := known.difference(self.text_ids())):
                return self._texts
            some = (post for post in self._read() if isinstance(post, Post) and post.post_id in missing)
            build_texts(some, self._texts, self._console, len(missing), completing=self._completing())
        return self._texts

    def text_ids(self) -> Iterator[str]:
        """Yield the ids of the posts whose texts are kept so far; sorted."""
        if self._texts.exists():
            with PostTexts(self._texts) as texts:
                yield from texts.all_ids()

    def posts(self, wanted: frozenset[str] | None = None) -> Iterator[Post | Failure]:
        """Yield the wanted posts and all failures of reading, in the order of the collection; None: all posts."""
        path = self.texts(wanted)
        with self.headers() as kept:
            if not path.exists():  # of no wanted post
                yield from (post for post in kept.posts() if isinstance(post, Failure))
                return
            with PostTexts(path) as texts:
                yield from kept.whole(texts, wanted)

    def every_post(self) -> Iterator[Post | Failure]:
        """Yield all posts: from the files, or from the collection where the texts of some posts are kept only."""
        return self.posts() if self.has_all_texts else identified(self._corpus.posts(), texts=True)


def build_texts(
    posts: Iterable[Post | Failure],
    out: Path,
    console: Console,
    total: int | None = None,
    *,
    completing: Completed | None = None,
) -> int:
    """Write the texts of posts, without formula ids, which depend on the graphs; return the number of posts in ``out``.

    Args:
        posts: posts, read as they are needed.
        out: posts.db; texts that it has are kept.
        completing: collection that completes its posts after they were read.
    """
    with console.stage("texts", total=total, unit="posts") as advance:
        return post_texts.build(out, posts, (), advance, completing)


@contextmanager
def held(folder: Path, lock: str, console: Console) -> Iterator[None]:
    """Lock this name in ``folder``; print a line if another process holds the lock."""
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / lock) as mine:
        if mine:
            yield
            return
    console.say(f"  waiting for another process that works in {folder}")
    with locked(folder / lock, wait=True):
        yield


def _each(posts: Iterable[Post | Failure], record: Callable[[Post | Failure], None]) -> Iterator[Post | Failure]:
    for post in posts:
        record(post)
        yield post


def write_table(failures: Iterable[Failure], path: Path) -> None:
    """Write failures as tab-separated values below a header line."""
    write_whole(path, table_of(failures))


def table_of(failures: Iterable[Failure]) -> str:
    r"""Return failures as tab-separated values below a header line.

    >>> table = table_of([Failure("7", "read", "bad_post", "posts.jsonl:3: no body")])
    >>> [line.split("\t") for line in table.splitlines()]
    [['post_id', 'stage', 'kind', 'message'], ['7', 'read', 'bad_post', 'posts.jsonl:3: no body']]
    """
    text = io.StringIO(newline="")
    table = csv.writer(text, delimiter="\t", lineterminator="\n")
    table.writerow(["post_id", "stage", "kind", "message"])
    table.writerows((one.post_id, one.stage, one.kind, encodable(one.message)) for one in failures)
    return text.getvalue()
