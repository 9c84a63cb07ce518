"""Requests to a Qdrant server: tried again while it is busy or away, and refused where its version is too old.

call = Caller("http://localhost:6333", ServerOptions())
call(lambda: client.count("posts").count)      # 8 attempts within some two minutes, then a StoreError
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from typing import TypeVar

from pydantic import ValidationError
from qdrant_client import QdrantClient
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from graphs.errors import StoreError
from mathamr.retrieval.server.options import ServerOptions

MEMORY = ":memory:"
NEEDED_VERSION = (1, 16)  # the first that keeps metadata of a collection
LONGEST_WAIT = 30.0  # seconds between two attempts; a server that asks for more is given it
T = TypeVar("T")


class Caller:
    """Run requests, again if the server is busy or away.

    Raises:
        StoreError: the server refuses, is busy in all attempts, or does not answer in any.
    """

    def __init__(self, location: str, options: ServerOptions) -> None:
        self._location, self._options = location, options

    def __call__(self, request: Callable[[], T]) -> T:
        for attempt in range(self._options.retries + 1):
            wait = min(self._options.wait * 2**attempt, LONGEST_WAIT)
            try:
                return request()
            except UnexpectedResponse as error:
                if error.status_code is not None and error.status_code < 500 and error.status_code != 429:
                    raise self._refused(error) from error
                last: Exception = error
            except ResourceExhaustedResponse as error:
                last = error
                wait = max(wait, float(error.retry_after_s)) if self._options.wait else 0.0
            except (ResponseHandlingException, ConnectionError, TimeoutError) as error:
                if isinstance(getattr(error, "source", None), ValidationError):  # it did answer
                    raise self._refused(error) from error
                last = error
            except (ApiException, QdrantException, ValueError) as error:
                raise self._refused(error) from error
            if attempt < self._options.retries:
                time.sleep(wait)
        attempts = self._options.retries + 1
        if isinstance(last, ResourceExhaustedResponse):
            raise StoreError(
                f"the Qdrant server was too busy in {attempts} attempts (429: {_reason(last)}); run the command again "
                "when it has less load: what is uploaded is kept",
                path=self._location,
            ) from last
        raise StoreError(
            f"the Qdrant server did not answer in {attempts} attempts ({_reason(last)}); is it running, and is "
            "QDRANT_API_KEY set if it wants one? location=embedded needs no server",
            path=self._location,
        ) from last

    def _refused(self, error: Exception) -> StoreError:
        return StoreError(f"the Qdrant server refused: {_reason(error)}", path=self._location)


def _reason(error: Exception) -> str:
    """Return the reason that the server gives, or the error in one line."""
    if isinstance(error, UnexpectedResponse):
        try:
            reason = str(error.structured()["status"]["error"])
        except (ValueError, KeyError, TypeError):
            reason = error.reason_phrase
        return f"{error.status_code}: {reason}"
    return " ".join(str(error).split())


def connect(location: str, options: ServerOptions) -> QdrantClient:
    """Return a client of the server at ``location``, or of this process for ``:memory:``.

    Raises:
        StoreError: no such place, no answer, or a server older than :data:`NEEDED_VERSION`.
    """
    if location == MEMORY:
        return QdrantClient(MEMORY)
    if not location.startswith(("http://", "https://")):
        raise StoreError(
            f"location={location!r} is not a place of an index; there are embedded, {MEMORY} and a server's URL "
            "(http://HOST:6333)"
        )
    client = QdrantClient(
        url=location,
        api_key=os.environ.get("QDRANT_API_KEY"),
        timeout=options.timeout,
        check_compatibility=False,  # below, with a message that says what to do
    )
    version = Caller(location, options)(lambda: client.info().version)
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers < NEEDED_VERSION:
        needed = ".".join(map(str, NEEDED_VERSION))
        raise StoreError(
            f"the Qdrant server has version {version}; {needed} or later is needed, which keeps metadata of "
            "collections. Upgrade it, or use location=embedded",
            path=location,
        )
    return client
