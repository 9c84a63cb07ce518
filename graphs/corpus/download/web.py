"""Files of a web server, downloaded whole: a broken transfer resumes, and what arrives is checked.

    downloads = Downloads("https://www.cs.rit.edu/~dprl/ARQMath-backup/", Path("arqmath"))
    offers = downloads.survey([WebFile("Formulas/opt_representation_v3.zip", size=587_000_000)])
    sum(offer.left for offer in offers)         # bytes that are still to come
    for offer in offers:
        downloads.fetch(offer, progress)        # raises CorpusError where the file cannot be had

The local name is the published one, blanks included:

>>> url_of("https://example.org/data/", "Evaluation/ Scripts & Qrels/Task 1 /qrel")
'https://example.org/data/Evaluation/%20Scripts%20%26%20Qrels/Task%201%20/qrel'

**Resuming.** An unfinished file is ``.NAME.part``, and ``.NAME.part.json`` has its size and its ETag or date. A request
for the rest names them (``Range``, ``If-Range``). A server that ignores the range, or has another version by now, makes
the file start again: two versions are never joined.

**Checks.** The size that the server announced, the published size where one is known (within a factor of two), the
checksums of every member of a zip or gzip file, the end of an XML file, and that no web page came instead. Only then
does the file get its name.
"""

from __future__ import annotations

import http.client
import re
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.message import Message
from pathlib import Path, PurePosixPath
from typing import IO

from graphs.corpus.download.unfinished import LARGER, UnfinishedFile, find_damage, locked
from graphs.errors import ConfigError, CorpusError

_BLOCK = 1 << 16
_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)")


@dataclass(frozen=True, slots=True)
class WebFile:
    """A file that a server should have.

    Attributes:
        path: path below the server's base URL, and below the local folder.
        part: part of the collection that it belongs to.
        size: published size in bytes, rounded; None where it is not known.
        without: consequence of its absence, as a sentence; empty for a file that nothing needs.
        instead: paths of other versions, used where the server has no ``path``.
    """

    path: str
    part: str = ""
    size: int | None = None
    without: str = ""
    instead: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Offer:
    """State of a file on the server and here, before it is downloaded.

    Attributes:
        file: the file that was asked for.
        path: path that the server has: ``file.path`` or one of ``file.instead``.
        size: bytes that the server announces; None where it does not.
        begun: bytes of an unfinished download.
        present: True if the complete file is here.
        problem: reason why the server does not give it; empty if it does.
    """

    file: WebFile
    path: str
    size: int | None = None
    begun: int = 0
    present: bool = False
    problem: str = ""

    @property
    def left(self) -> int:
        """Bytes to download; the published size where the server announces none."""
        if self.present or self.problem:
            return 0
        return max((self.size if self.size is not None else self.file.size or 0) - self.begun, 0)


class Downloads:
    """Downloads from below the URL ``base`` into the folder ``root``.

    Args:
        base: http or https URL of the folder that the paths start from.
        root: local folder, made if needed.
        attempts: failed attempts in a row, none of which brought a byte, after which a file is given up.
        wait: seconds before the second attempt; doubled each time, at most a minute.
        timeout: seconds without an answer after which a connection counts as broken.
    """

    def __init__(self, base: str, root: Path, *, attempts: int = 6, wait: float = 1.0, timeout: float = 60.0) -> None:
        if urllib.parse.urlsplit(base).scheme not in ("http", "https") or not urllib.parse.urlsplit(base).netloc:
            raise ConfigError(f"cannot download from {base!r}: an http:// or https:// URL is needed")
        self.base = base
        self.root = root
        self._attempts, self._wait, self._timeout = attempts, wait, timeout
        self._opener = _opener()

    # -- before ------------------------------------------------------------------------------------------------------

    def survey(self, files: Sequence[WebFile], progress: Callable[[int], None] = lambda count: None) -> list[Offer]:
        """Ask the server for the size of every file; one Offer each, in order. Raises CorpusError without a server."""
        offers = [self._offer(file) for file in files[:1]]  # alone: without a server, the others would each wait too
        progress(len(offers))
        with ThreadPoolExecutor(4) as threads:
            for offer in threads.map(self._offer, files[1:]):
                offers.append(offer)
                progress(1)
        return offers

    def _offer(self, file: WebFile) -> Offer:
        problem = ""
        for path in (file.path, *file.instead):
            local = local_path(self.root, path)
            try:
                size = self._announced(path)
            except _Refused as error:
                problem = problem or str(error)
                if local.is_file():
                    return Offer(file, path, local.stat().st_size, present=True)
                continue
            here = local.stat().st_size if local.is_file() else None
            if here is not None and (size == here or (size is None and _is_whole_archive(local, file.size))):
                return Offer(file, path, here, present=True)
            part = _part_of(local)
            return Offer(file, path, size, begun=part.stat().st_size if part.is_file() else 0)
        return Offer(file, file.path, problem=problem)

    def _announced(self, path: str) -> int | None:
        """Return the size that a HEAD request is answered with."""
        for attempt in range(1, self._attempts + 1):
            try:
                with self._open(path, {}, method="HEAD") as response:
                    return _length(response.headers)
            except _Broken as error:
                if attempt == self._attempts:
                    message = f"{error}; is there a connection, and is --from right? Try again later"
                    raise CorpusError(message, path=url_of(self.base, path)) from error
                self._pause(attempt)
            except _Refused as error:
                if error.code in (405, 501):  # a server that answers GET alone
                    return None
                raise
        raise AssertionError("unreachable")

    def require_space(self, offers: Sequence[Offer]) -> int:
        """Return the free bytes of the disk; raise CorpusError if the files that ``offers`` leave do not fit."""
        self.root.mkdir(parents=True, exist_ok=True)
        free, needed = shutil.disk_usage(self.root).free, sum(offer.left for offer in offers)
        if needed > free:
            message = (
                f"{needed:,} bytes are to come and the disk has {free:,} left: free some, or name parts with --only"
            )
            raise CorpusError(message, path=self.root)
        return free

    # -- the transfer ------------------------------------------------------------------------------------------------

    def fetch(self, offer: Offer, progress: Callable[[int], None] = lambda count: None, *, first: int = 0) -> None:
        """Download one file. A file that is complete is left as it is.

        Args:
            offer: one result of :meth:`survey`.
            progress: called with the number of bytes that arrived; a negative number where they are thrown away.
            first: stop after this number of new bytes and keep them for the next call, to measure the speed; 0: all.

        Raises:
            CorpusError: the server does not have it, breaks off too often, or sends something damaged.
        """
        if offer.present:
            return
        url, local = url_of(self.base, offer.path), local_path(self.root, offer.path)
        if offer.problem:
            raise CorpusError(offer.problem, path=url)
        local.parent.mkdir(parents=True, exist_ok=True)
        for again in (False, True):
            with locked(_part_of(local)) as part:
                if not self._receive(part, offer, progress, first):
                    return
                part.flush()
                damage = find_damage(part.path, local.name, offer.file.size)
                if not damage:
                    part.finish(local)
                    return
                progress(-part.drop())
            if again:
                raise CorpusError(f"{damage}, in two downloads; tell those who publish it", path=url)

    def _receive(self, part: UnfinishedFile, offer: Offer, progress: Callable[[int], None], first: int) -> bool:
        """Fill ``part``; return False if it stopped after ``first`` bytes."""
        best, failures, wanted = part.size, 0, part.size + first if first else None
        while True:
            try:
                return self._attempt(part, offer, progress, wanted)
            except _Broken as error:
                failures = 0 if part.size > best else failures + 1
                best = max(best, part.size)
                if failures >= self._attempts:
                    message = (
                        f"gave up after {failures} attempts at byte {part.size:,}: {error}; run it again to resume"
                    )
                    raise CorpusError(message, path=url_of(self.base, offer.path)) from error
                self._pause(failures + 1, error.after)
            except _Refused as error:
                raise CorpusError(str(error), path=url_of(self.base, offer.path)) from error

    def _attempt(self, part: UnfinishedFile, offer: Offer, progress: Callable[[int], None], wanted: int | None) -> bool:
        """Send a request; return True if the file is complete, False if ``wanted`` bytes are there."""
        offset = part.size if part.resumable else 0
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        if offset and part.tag:
            headers["If-Range"] = part.tag
        try:
            response = self._open(offer.path, headers)
        except _Refused as error:
            if error.code == 416 and part.total == part.size:
                return True
            if error.code != 416:
                raise
            progress(-part.drop())  # the rest of another version was asked for
            raise _Broken("the server has no such range of bytes") from error
        with response:
            start, total = _range(response) if response.status == 206 else (0, _length(response.headers))
            tag = _tag(response.headers)
            if response.status == 206 and (start != offset or total != part.total or tag != part.tag):
                progress(-part.drop())
                raise _Broken("the file has changed since its first bytes came")
            if None not in (total, offer.size) and total != offer.size:
                raise _Refused(f"the server announced {offer.size:,} bytes and now sends {total:,}")
            if start == 0:
                progress(-part.begin(total, tag))
            while block := _read(response):
                part.write(block)
                progress(len(block))
                if offer.file.size is not None and part.size > LARGER * offer.file.size:
                    progress(-part.drop())
                    raise _Refused(f"sends more than {LARGER} times the {offer.file.size:,} bytes that are published")
                if wanted is not None and part.size >= wanted:
                    return False
        if total is not None and part.size != total:
            raise _Broken(f"the connection ended after {part.size:,} of {total:,} bytes")
        return True

    def _open(self, path: str, headers: dict[str, str], method: str = "GET") -> http.client.HTTPResponse:
        request = urllib.request.Request(
            url_of(self.base, path), headers={"User-Agent": "mathamr-plus", **headers}, method=method
        )
        try:
            response: http.client.HTTPResponse = self._opener.open(request, timeout=self._timeout)
            return response
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in (408, 425, 429) or (error.code >= 500 and error.code != 501):
                raise _Broken(f"{error.code} {error.reason}", _seconds(error.headers.get("Retry-After"))) from error
            raise _Refused(f"{error.code} {error.reason}", error.code) from error
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            raise _Broken(str(getattr(error, "reason", "") or error or type(error).__name__)) from error

    def _pause(self, failures: int, after: float = 0.0) -> None:
        time.sleep(min(max(self._wait * 2 ** (failures - 1), after), 60.0))


class _Broken(Exception):
    """A connection that ended; another attempt may succeed, ``after`` seconds from now."""

    def __init__(self, message: str, after: float = 0.0) -> None:
        super().__init__(message)
        self.after = after


class _Refused(Exception):
    """An answer that another attempt would get again; ``code`` is its status, or 0."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Handler of redirects to http and https that keeps the method and the range."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        before, after = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(newurl)
        if after.scheme != "https" and after.scheme != before.scheme:
            raise _Refused(
                f"redirects to {newurl}, which is not followed: http and https alone are, and never back to http"
            )
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None:
            request.method = req.get_method()
        return request


def _opener() -> urllib.request.OpenerDirector:
    """Return an opener for http and https alone: no ftp:, file: or data: URLs."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _Redirects(),
    ):
        opener.add_handler(handler)
    return opener


def url_of(base: str, path: str) -> str:
    """Return the URL of ``path`` below ``base``, percent-encoded."""
    return base.rstrip("/") + "/" + urllib.parse.quote(path)


def local_path(root: Path, path: str) -> Path:
    """Return the place of ``path`` below ``root``. Raises ConfigError for a path that leads out of it."""
    parts = PurePosixPath(path).parts
    if not parts or PurePosixPath(path).is_absolute() or any(part == ".." or "\\" in part for part in parts):
        raise ConfigError(f"{path!r} leads out of the folder that files are downloaded to")
    return root.joinpath(*parts)


def _is_whole_archive(local: Path, published: int | None) -> bool:
    """Return whether a file is whole for certain without the server's word: an archive shows it, nothing else does."""
    return local.suffix in (".zip", ".gz") and not find_damage(local, local.name, published)


def _part_of(local: Path) -> Path:
    return local.with_name(f".{local.name}.part")  # hidden, so that no reader takes it for a file


def _read(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read(_BLOCK)
    except (http.client.HTTPException, OSError) as error:
        raise _Broken(str(error) or type(error).__name__) from error


def _length(headers: Message) -> int | None:
    value = headers.get("Content-Length", "")
    return int(value) if re.fullmatch(r"\d{1,18}", value) else None


def _range(response: http.client.HTTPResponse) -> tuple[int | None, int | None]:
    """First byte and whole size that a 206 answer names."""
    match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if match is None or match[1] is None or match[2] == "*":
        return None, None
    return int(match[1]), int(match[2])


def _tag(headers: Message) -> str:
    """Return the mark of a version: a strong ETag, else the date of its last change, else nothing."""
    tag = headers.get("ETag", "")
    return tag if tag.startswith('"') else headers.get("Last-Modified", "")


def _seconds(value: str | None) -> float:
    return float(value) if value is not None and re.fullmatch(r"\d{1,6}", value) else 0.0
