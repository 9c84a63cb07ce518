"""Web page and its JSON interface, behind a :class:`~mathamr.search.web.guard.Guard`.

======================  =========================================================================================
``GET /``               the page (``page/``), KaTeX and MathLive below ``/katex`` and ``/mathlive``
``GET /api/index``      what is searched, by which strategies, and how long queries may be
``POST /api/search``    ``{"query": ..., "task": ..., "strategy": ..., "exact": ..., "k": ...}`` -> results
``POST /api/export``    the same with ``"format": "json"`` or ``"bib"`` -> a file of the results
``POST /api/compare``   the same with ``"indexes": [...]`` -> ranked lists of several indexes with ranks in the others
``POST /api/heat-map``  ``{"query": ..., "post_id": ...}`` -> similarities of all pairs of virtual nodes
``GET /api/posts/ID``   the whole text of a post
``GET /api/health``     ``{"status": "ok", ...}`` while the server answers
``GET /api/metrics``    counts of requests, in the text format of Prometheus
======================  =========================================================================================

A server of several indexes answers from the first, unless a request names another one (``"index": NAME``, or
``?index=NAME`` without a body).

A request that cannot be answered gets ``{"error": message}`` with a status of 400 or more: 422 for a query that cannot
be read, 404 for an unknown post, 503 while :data:`MAX_WAITING` questions wait for the engine, which answers one at a
time. docs/search-api.md shows requests and answers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route
from starlette.staticfiles import StaticFiles

from graphs.errors import ConfigError, MathAMRError, UnknownPostError
from mathamr.retrieval.index import Strategy
from mathamr.search.answer import MAX_RESULTS, TASKS, Answer
from mathamr.search.comparison import compare
from mathamr.search.searchable import SearchEngine
from mathamr.search.selection import CANDIDATES, FORMULAS, KINDS, typed
from mathamr.search.settings import Settings
from mathamr.search.typed_query import MAX_CHARACTERS
from mathamr.search.web import answers, export, katex, mathlive
from mathamr.search.web.guard import Guard
from mathamr.search.web.operation import Counts, Watched

PAGE = Path(__file__).with_name("page")
T = TypeVar("T")
MAX_WAITING = 64  # questions, the one being answered among them
CLIENT_GONE = 499  # status in logs and metrics, as of nginx; nobody receives it


def _whole(number: object) -> object:
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _key(description: str, **schema: Any) -> Any:
    """Return the description of a key for /api/openapi.json; the engine checks the value, with its own message."""
    return Field(description=description, json_schema_extra=schema)


_Whole = Annotated[int, BeforeValidator(_whole)]  # 5.0 is an integer in JSON Schema, which describes the interface
_Query = Annotated[str, _key("words, and formulas in LaTeX", minLength=1, maxLength=MAX_CHARACTERS)]
_Index = Annotated[str | None, _key("name of an index; /api/index lists them")]


class _Body(BaseModel):
    """JSON object of a request; unknown keys and values of other types, such as ``"k": "5"``, are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class _Settings(_Body):
    """Settings of one request; those that it leaves out are the server's."""

    query: _Query
    task: Annotated[str | None, _key("what is searched", enum=[*TASKS, None])] = None
    strategy: Annotated[str | None, _key("a strategy of the index; /api/index lists them")] = None
    exact: Annotated[bool | None, _key("whether all posts are compared")] = None
    k: Annotated[_Whole | None, _key("number of results", minimum=1, maximum=MAX_RESULTS)] = None
    kind: Annotated[str | None, _key("kind of the posts", enum=[*KINDS, None])] = None
    formulas: Annotated[str | None, _key("posts with formulas or without", enum=[*FORMULAS, None])] = None
    start: Annotated[_Whole | None, _key("number of skipped results", minimum=0, maximum=CANDIDATES - 1)] = None


class SearchRequest(_Settings):
    """A search in one index; by default in the first."""

    index: _Index = None


class CompareRequest(_Settings):
    """A search in several indexes; by default in all that are served."""

    indexes: Annotated[list[str] | None, _key("names of indexes")] = None


class ExportRequest(SearchRequest):
    """A search, and the form of the file: ``json`` or ``bib``."""

    format: Annotated[str, _key("form of the file", enum=list(export.FORMATS))] = "json"


class HeatMapRequest(_Body):
    """A query and a post, whose virtual nodes are compared."""

    query: _Query
    post_id: str
    index: _Index = None


class Refusal(BaseModel):
    """Reason why a request was not answered."""

    error: str


class Busy(Exception):
    """Too many questions are waiting."""


class ClientGone(Exception):
    """Connection that its client has closed."""


class Turns:
    """Queue of tasks for the engine, done one by one in a separate thread; its length is limited.

    A task leaves the queue as soon as its client has gone. One that is being done keeps its place to its end.
    """

    def __init__(self, places: int) -> None:
        self._places = places
        self.taken = 0  # tasks that wait or are being done
        self._turn = asyncio.Lock()  # is given in the order of asking
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="engine")

    async def __call__(self, request: Request, work: Callable[[], T]) -> T:
        """Return the result of ``work``; raise Busy if the queue is full, ClientGone if the client has left."""
        if self.taken >= self._places:
            raise Busy
        self.taken += 1
        turn, gone = asyncio.create_task(self._turn.acquire()), asyncio.create_task(_gone(request))
        try:
            await asyncio.wait((turn, gone), return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                raise ClientGone
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            self.taken -= 1
            gone.cancel()
            if not turn.cancel():  # it has come
                self._turn.release()


async def _gone(request: Request) -> None:
    """Wait until the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def create_app(  # noqa: C901
    engine: SearchEngine,
    settings: Settings,
    *,
    more: Sequence[tuple[SearchEngine, Settings]] = (),
    names: Collection[str] = (),
    counts_of: Callable[[Callable[[], int]], Counts] = Counts,
    log: Callable[[str], None] | None = None,
) -> Watched:
    """Return the application that answers from ``engine``, by ``settings`` unless asked otherwise.

    Args:
        more: further indexes, to choose from and to compare with.
        names: names of this host, see :mod:`mathamr.search.web.guard`.
        counts_of: makes the counts from a function that returns the number of waiting questions.
        log: called with a line of JSON after each request.
    """
    # FastAPI's pages of documentation load their program from elsewhere; the schema itself does not.
    refusals: dict[int | str, dict[str, Any]] = {
        "4XX": {"model": Refusal, "description": "The request cannot be answered."},
        "5XX": {"model": Refusal, "description": "The server is busy (503), or has failed."},
    }
    app = FastAPI(
        title="MathAMR+ search", docs_url=None, redoc_url=None, openapi_url="/api/openapi.json", responses=refusals
    )
    _explain_errors(app)
    turns = Turns(MAX_WAITING)
    counts = counts_of(lambda: turns.taken)
    begun = time.monotonic()
    usual = settings.strategy
    all_indexes = [(engine, settings), *more]
    by_name = dict(zip(index_names([own.index for _, own in all_indexes]), all_indexes, strict=True))

    def engine_of(name: str | None) -> SearchEngine:
        return engine if name is None else _find(by_name, name)[0]

    @app.get("/api/index", summary="Describe an index")
    async def index_(index: str | None = None) -> dict[str, Any]:
        name = next(iter(by_name)) if index is None else index
        listed = [
            {"name": one, "posts": len(own), "system": own.about()["system"]} for one, (own, _) in by_name.items()
        ]
        return {**_about(*_find(by_name, name)), "name": name, "indexes": listed}

    def strategy_of(body: _Settings) -> Strategy:
        exact = usual.exact if body.exact is None else body.exact
        return Strategy(usual.name if body.strategy is None else body.strategy, exact, usual.pool, usual.ef)

    def read(body: _Settings) -> tuple[str, dict[str, Any]]:
        """Return the text of a query and the other arguments of a search, without its strategy."""
        filters = body.model_dump(include={"kind", "formulas", "start"}, exclude_none=True)
        text, selection = typed(body.query, replace(settings.selection, **filters))
        given = body.model_dump(include={"task", "k"}, exclude_none=True)
        return text, {"task": settings.task, "k": settings.k, **given, "selection": selection}

    def found(body: SearchRequest) -> Answer:
        text, arguments = read(body)
        own = engine_of(body.index)
        given = [name for name in ("strategy", "exact") if getattr(body, name) is not None]
        if given and not own.about()["strategies"]:
            raise ConfigError(f"an index of {own.about()['system']} has no strategies; leave out {' and '.join(given)}")
        return own.answer(text, strategy=strategy_of(body), **arguments)

    def compared(body: CompareRequest) -> dict[str, Any]:
        text, arguments = read(body)
        wanted = {name: _find(by_name, name)[0] for name in (by_name if body.indexes is None else body.indexes)}
        found = compare(wanted, text, strategy=strategy_of(body), **arguments)
        return answers.comparison(found, {name: own.about()["system"] for name, own in wanted.items()})

    @app.post("/api/search", summary="Search an index")
    async def search(body: SearchRequest, request: Request) -> dict[str, Any]:
        return await turns(request, lambda: answers.answer(found(body)))

    @app.post("/api/compare", summary="Search several indexes")
    async def compare_(body: CompareRequest, request: Request) -> dict[str, Any]:
        return await turns(request, lambda: compared(body))

    @app.post("/api/export", summary="Write the results to a file", responses={200: {"content": export.CONTENT}})
    async def export_(body: ExportRequest, request: Request) -> Response:
        name = export.check_format(body.format)
        text = await turns(request, lambda: export.exported(body.query, found(body), name))
        headers = {"Content-Disposition": f'attachment; filename="results.{name}"'}
        return Response(text, media_type=export.FORMATS[name], headers=headers)

    @app.post("/api/heat-map", summary="Compare the virtual nodes of a query and a post")
    async def heat_map(body: HeatMapRequest, request: Request) -> dict[str, Any]:
        own = engine_of(body.index)
        return await turns(request, lambda: answers.heat_map(own.explain(typed(body.query)[0], body.post_id)))

    @app.get("/api/posts/{post_id:path}", summary="Return the text of a post")
    async def post(post_id: str, request: Request, index: str | None = None) -> dict[str, Any]:
        own = engine_of(index)
        return await turns(request, lambda: answers.post(own.post(post_id)))

    @app.get("/api/health", summary="Say that the server answers")
    async def health() -> dict[str, Any]:
        seconds = round(time.monotonic() - begun, 3)
        return {"status": "ok", "posts": len(engine), "waiting": turns.taken, "seconds": seconds, **counts.about}

    @app.get(
        "/api/metrics",
        summary="Count requests, for Prometheus",
        response_class=Response,
        responses={200: {"content": {"text/plain": {}}}},
    )
    async def metrics() -> Response:
        return Response(counts.text(), media_type="text/plain; version=0.0.4")

    app.openapi()  # made before HEAD is added to GET, which it would list twice
    for route in app.routes:
        if isinstance(route, APIRoute) and route.methods == {"GET"}:
            route.methods = {"GET", "HEAD"}
    app.mount("/katex", StaticFiles(directory=katex.FOLDER))
    app.mount("/mathlive", StaticFiles(directory=mathlive.FOLDER))
    app.mount("/", StaticFiles(directory=PAGE, html=True))
    return Watched(Guard(app, names), counts, log)


def index_names(folders: Sequence[Path]) -> list[str]:
    """Return a name for each index: that of its folder, with a number if another index has it.

    >>> index_names([Path("a/index"), Path("b/index"), Path("text")])
    ['index', 'index-2', 'text']
    """
    names: list[str] = []
    for folder in folders:
        plain = folder.resolve().name or "index"
        numbered = (f"{plain}-{number}" for number in count(2))
        names.append(plain if plain not in names else next(name for name in numbered if name not in names))
    return names


def _find(by_name: Mapping[str, T], name: str) -> T:
    if name not in by_name:
        raise ConfigError(f"unknown index {name!r}; choose from: {', '.join(by_name)}")
    return by_name[name]


def _about(engine: SearchEngine, settings: Settings) -> dict[str, Any]:
    usual = settings.strategy
    return {
        **engine.about(),
        "usual": {"task": settings.task, "strategy": usual.name, "exact": usual.exact, "k": settings.k}
        | {"kind": settings.selection.kind, "formulas": settings.selection.formulas},
        "max_characters": MAX_CHARACTERS,
        "max_results": MAX_RESULTS,
    }


def _methods(app: FastAPI, request: Request) -> list[str]:
    """Return the methods of the routes that match a request but for its method."""
    partial = [route for route in app.routes if route.matches(request.scope)[0] is Match.PARTIAL]
    return sorted({method for route in partial if isinstance(route, Route) for method in route.methods or ()})


def _explain_errors(app: FastAPI) -> None:
    """Answer every error as ``{"error": message}``."""

    def error(status: int, message: str, **headers: str) -> JSONResponse:
        # A message may quote what was asked, and JSON can ask for half of a surrogate pair, which UTF-8 cannot write.
        shown = message.encode(errors="backslashreplace").decode()
        return JSONResponse({"error": shown}, status, headers)

    @app.exception_handler(MathAMRError)
    async def refused(_: Request, exception: MathAMRError) -> JSONResponse:
        return error(404 if isinstance(exception, UnknownPostError) else 422, str(exception))

    @app.exception_handler(Busy)
    async def busy(_: Request, __: Busy) -> JSONResponse:
        message = f"{MAX_WAITING} questions are waiting already; ask again in a moment"
        return error(503, message, **{"Retry-After": "1"})

    @app.exception_handler(ClientGone)
    async def client_gone(_: Request, __: ClientGone) -> JSONResponse:
        return error(CLIENT_GONE, "the client has closed the connection")

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, exception: RequestValidationError) -> JSONResponse:
        first = exception.errors()[0]
        if first["type"] == "json_invalid":
            return error(422, f"the body is not JSON: {first['ctx']['error']}, at character {first['loc'][-1]}")
        if first["type"] == "extra_forbidden":
            return error(422, f"unknown key {first['loc'][-1]!r}; /api/openapi.json lists the keys of each request")
        place = ".".join(str(step) for step in first["loc"] if step != "body")
        return error(422, f"{place or 'body'}: {first['msg']}")

    @app.exception_handler(HTTPException)
    async def http(request: Request, exception: HTTPException) -> JSONResponse:
        path, status, methods = request.url.path, exception.status_code, _methods(app, request)
        if status == 405 and not methods:  # of the mounted folders, which refuse before they look for a file
            if path.startswith("/api/"):
                return error(404, f"{path}: Not Found")
            methods = ["GET", "HEAD"]
        if methods:
            message = f"{path}: {request.method} is not answered; use {' or '.join(methods)}"
            return error(405, message, Allow=", ".join(methods))
        return error(status, f"{path}: {exception.detail}")

    @app.exception_handler(Exception)
    async def failed(_: Request, __: Exception) -> JSONResponse:
        return error(500, "the server has failed at this request; its terminal has the details")
