r"""Search an index in a browser, on this machine.

    mathamr serve index=outputs/index                     # then open http://127.0.0.1:8000
    mathamr serve index=outputs/index port=9000 task=formulas strategy=doc_vn_maxsim k=20
    mathamr serve index=outputs/bm25 index=outputs/text       # two systems, to compare side by side

The settings of mathamr search, except start, are the initial choices on the page. Further settings:

  port=N           port, by default 8000; 0 for any free port, which is printed
  host=NAME        address or name to listen on, by default 127.0.0.1; with any other, other machines can use the page
                   without a password
  workers=N        processes that answer, by default 1; they share the memory of the index's vectors
  --log            one line of JSON on standard error for each request, without the text of queries

Needs the extra ``web`` (``pip install 'mathamr-plus[web]'``). Ctrl-C ends the server. On the signal HUP the server
opens the index again, e.g. after ``mathamr index``; in the meantime it searches the old one. Signals reach all workers.
A worker that dies is replaced; if the new one does not answer, the server ends.

Exit codes: 0 ended by Ctrl-C; 2 an error, with a message.
"""

from __future__ import annotations

import signal
import socket
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.command import HELP, command
from graphs.errors import ConfigError

if TYPE_CHECKING:
    import uvicorn

    from mathamr.search.reloading import ReloadableEngine
    from mathamr.search.searchable import SearchEngine
    from mathamr.search.settings import Settings
    from mathamr.search.web.workers import Place

HOST, PORT = "127.0.0.1", 8000
MAX_WORKERS = 64
KEYS = ("host", "port", "workers", "index")  # settings that may be given as options, such as --port 9000
MAX_CONNECTIONS = 256  # of a worker: several times its waiting questions, which are refused with a reason


@command
def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or HELP & set(words):
        print(__doc__)
        return 0 if words else 2

    for package in ("fastapi", "uvicorn"):
        if find_spec(package) is None:
            raise ConfigError(f"{package} is not installed; pip install 'mathamr-plus[web]' brings what the page needs")

    from mathamr.search.settings import as_settings
    from mathamr.search.web.workers import Place

    words, worker = Place.of(as_settings(words, KEYS))
    workers = whole(words, "workers", 1)
    if not 1 <= workers <= MAX_WORKERS:
        raise ConfigError(f"workers={workers}; from 1 to {MAX_WORKERS} processes can answer")
    alone = [word for word in words if not word.startswith("workers=")]
    return serve_by_workers(alone, workers) if workers > 1 else serve_alone(alone, worker)


def serve_by_workers(words: Sequence[str], count: int) -> int:
    """Start the workers, and answer until a signal ends them; returns the exit code."""
    from mathamr.search.web.workers import Workers

    host, port = place([word for word in words if word.startswith(("host=", "port="))])
    with listen(host, port) as listener:
        warn_of_others(listener)
        command = [sys.executable, "-P", str(Path(__file__).resolve()), *words]
        started, warn = partial(print, flush=True), partial(print, file=sys.stderr, flush=True)
        return Workers(command, count, listener, started=started, warn=warn).run()


def serve_alone(words: Sequence[str], worker: Place | None = None) -> int:
    """Answer from this process, which may be a worker of a server, until Ctrl-C; returns the exit code."""
    with_log = "--log" in words

    from mathamr.search.reloading import ReloadableEngine
    from mathamr.search.settings import read
    from mathamr.search.web.workers import end_with_parent
    from mathamr.search_index import open_engine

    words, folders = split_indexes([word for word in words if word != "--log"])
    settings, others = read(words, ("host", "port"))
    if folders and settings.model is not None:
        raise ConfigError(f"model={settings.model} is about one index, but {len(folders) + 1} are given; leave it out")
    if "start" in settings.named:
        raise ConfigError(f"start={settings.selection.start}: the page begins at the first result; leave start out")
    host, port = place(others)

    def announced_engine(own: Settings) -> SearchEngine:
        engine, message = open_engine(own)
        print(message, file=sys.stderr, flush=True)
        return engine

    with ExitStack() as stack:
        listener = listen(host, port) if worker is None else socket.socket(fileno=worker.listener)
        stack.enter_context(listener)
        if worker is None:
            warn_of_others(listener)
        else:
            end_with_parent()
        served = []
        for own in (settings, *(replace(settings, index=folder) for folder in folders)):
            engine = ReloadableEngine(partial(announced_engine, own))
            stack.callback(engine.close)
            served.append((engine, own))
        reload_on_signal([engine for engine, _ in served])
        try:
            server_of(served, listener, host, with_log, worker).run(sockets=[listener])
        except KeyboardInterrupt:
            print("ended", file=sys.stderr)
    return 0


def split_indexes(words: Sequence[str]) -> tuple[list[str], list[Path]]:
    """Return the words with their first ``index=FOLDER`` alone, and the folders of the others.

    >>> split_indexes(["index=a", "k=3", "index=b"])
    (['index=a', 'k=3'], [PosixPath('b')])
    """
    indexes = [word for word in words if word.startswith("index=")]
    others = [word for word in words if word not in indexes]
    return [*indexes[:1], *others], [Path(word.removeprefix("index=")) for word in indexes[1:]]


def place(words: Sequence[str]) -> tuple[str, int]:
    """Return host and port among the words; raise :class:`ConfigError` for other words and impossible ports.

    >>> place(["port=9000"])
    ('127.0.0.1', 9000)
    """
    given = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in ("host", "port"):
            raise ConfigError(f"{word!r} is not a setting; queries are typed into the page")
        given[key] = value
    port = whole(words, "port", PORT)
    if not 0 <= port < 1 << 16:
        raise ConfigError(f"port={port}; ports go from 0, any that is free, to 65535")
    return given.get("host") or HOST, port


def whole(words: Sequence[str], key: str, default: int) -> int:
    """Return the whole number of ``key=N``, the last one of the words, or ``default``.

    >>> whole(["index=a", "workers=2"], "workers", 1)
    2
    """
    value = ([word.partition("=")[2] for word in words if word.startswith(f"{key}=")] or [str(default)])[-1]
    try:
        return int(value)
    except ValueError as error:
        raise ConfigError(f"{key}={value}; a whole number is needed") from error


def listen(host: str, port: int) -> socket.socket:
    """Bind a socket before anything is loaded; raise :class:`ConfigError` if that fails."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address, family=family)
    except (OSError, UnicodeError) as error:  # the latter of an invalid name
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"host={host} port={port}: {reason}; give another one") from error


def warn_of_others(listener: socket.socket) -> None:
    """Print a note if other machines can reach the page."""
    if not listener.getsockname()[0].startswith(("127.", "::1")):
        print("note: other machines can reach this page without a password", file=sys.stderr, flush=True)


def reload_on_signal(engines: Sequence[ReloadableEngine]) -> None:
    """Open every index again at each SIGHUP while searches continue; if that fails, keep the old one and print why."""
    from graphs.errors import MathAMRError

    def reload() -> None:
        for engine in engines:
            try:
                engine.reload()
            except MathAMRError as error:
                print(f"not reloaded; searches use the old index: {error}", file=sys.stderr, flush=True)

    signal.signal(signal.SIGHUP, lambda *_: threading.Thread(target=reload).start())


def server_of(
    served: Sequence[tuple[SearchEngine, Settings]],
    listener: socket.socket,
    host: str,
    with_log: bool = False,
    worker: Place | None = None,
) -> uvicorn.Server:
    """Return the server of the page for one index or several; it prints its address when it answers.

    With a log, it writes a line on standard error for each request.
    """
    import uvicorn

    from mathamr.search.web.app import create_app
    from mathamr.search.web.operation import Counts, SharedCounts
    from mathamr.search.web.patience import PatientProtocol

    address, port = listener.getsockname()[:2]
    url = f"http://{f'[{address}]' if ':' in address else address}:{port}"

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            print(url, flush=True)

    log = partial(print, file=sys.stderr, flush=True) if with_log else None
    counts = partial(SharedCounts, worker.counts, worker.number, worker.workers) if worker else Counts
    config = uvicorn.Config(
        create_app(*served[0], more=served[1:], counts_of=counts, names=[host], log=log),
        http=PatientProtocol,
        log_level="warning",
        lifespan="off",
        ws="none",
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
    )
    return Server(config)


if __name__ == "__main__":
    sys.exit(main())
