"""Load on the server of the search page: answers, errors, waiting times and memory with clients that never pause.

    python scripts/bench.py serve_load --index index                        # 50 clients for a minute
    python scripts/bench.py serve_load --index index --workers 2            # two processes that answer

The server is a separate process, started by mathamr serve. The clients are threads of this process, on the same cores.
A client sends the beginning of a post as its query, a different post each time, and waits for the answer. If the server
is full (503), the client waits as long as the server says and asks again; the waiting counts for the query. Every other
status, and a broken connection, is an error. ``memory`` is the resident memory of the server, in MiB: ``first`` after a
tenth of the time, ``last`` at the end. With several workers it is the sum over their processes, with shared memory
counted once (``Pss``). Exit code 1: errors, which are listed.
"""

from __future__ import annotations

import argparse
import http.client
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from mathamr.evaluation.efficiency import process_memory
from mathamr.search.catalog import Catalog
from scripts.benchmarks.collection import family

QUERIES = 500  # different ones; more than the engine remembers
CHARACTERS = 120  # of a query
PAUSE = 1.0  # seconds after a 503, as its Retry-After says
PATIENCE = 120.0  # seconds until a client gives up
_SCRIPTS = Path(__file__).resolve().parents[2]


@dataclass
class Load:
    """Seconds of each answer, requests that were sent away for lack of a place, and errors by their message."""

    seconds: list[float] = field(default_factory=list)
    busy: int = 0
    errors: Counter[str] = field(default_factory=Counter)


def main() -> tuple[dict[str, object], int]:
    """Serve the index, load the server, print the errors; return the result, and the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--index", type=Path, required=True, help="folder of an index")
    parser.add_argument("--clients", type=int, default=50, help="clients at the same time")
    parser.add_argument("--seconds", type=float, default=60.0, help="duration")
    parser.add_argument("--workers", type=int, default=1, help="processes of the server")
    given = parser.parse_args()
    queries = queries_of(given.index)
    command = [sys.executable, str(_SCRIPTS / "serve.py"), f"index={given.index}", "port=0", f"workers={given.workers}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = urlsplit(server.stdout.readline().strip()).netloc
            if not address:
                raise SystemExit(1)  # the server has said why
            load, memory = run(address, queries, given.clients, given.seconds, server.pid)
        finally:
            server.terminate()
    for message, count in load.errors.most_common(10):
        print(f"{count:6,} x {message}")
    result = {"workers": given.workers, **summary(load, memory, given.clients, given.seconds)}
    return result, int(bool(load.errors) or not load.seconds)


def queries_of(index: Path) -> list[str]:
    """Return the beginnings of posts, spread over an index."""
    catalog = Catalog.open(index)
    try:
        ids = sorted(catalog.vectors.post_ids())
        places = np.unique(np.linspace(0, len(ids) - 1, QUERIES).astype(int))
        texts = catalog.texts.get([ids[place] for place in places])
        return [text.snippet(CHARACTERS) for text in texts.values()]
    finally:
        catalog.close()


def run(address: str, queries: list[str], clients: int, seconds: float, pid: int) -> tuple[Load, list[float]]:
    """Ask for ``seconds``; return the answers, and the memory of process ``pid`` in MiB, each half second."""
    load, lock = Load(), threading.Lock()
    end = time.monotonic() + seconds
    threads = [
        threading.Thread(target=_ask, args=(address, queries[number % len(queries) :] + queries, end, load, lock))
        for number in range(clients)
    ]
    for thread in threads:
        thread.start()
    memory = []
    while time.monotonic() < end:
        memory.append(resident(pid))
        time.sleep(0.5)
    for thread in threads:
        thread.join()
    return load, [*memory, resident(pid)]


def _ask(address: str, queries: list[str], end: float, load: Load, lock: threading.Lock) -> None:
    """Ask one query after the other until ``end``, at least one, over one connection."""
    connection = http.client.HTTPConnection(address, timeout=PATIENCE)
    place = 0
    while not place or time.monotonic() < end:
        start = time.monotonic()
        query = queries[place * 7 % len(queries)]
        place += 1
        message = ""
        try:
            while (status := _status(connection, query)) == 503 and time.monotonic() < end + PATIENCE:
                with lock:
                    load.busy += 1
                time.sleep(PAUSE)
            if status != 200:
                message = f"status {status}"
        except (OSError, http.client.HTTPException) as error:
            message = repr(error)
            connection.close()
        with lock:
            if message:
                load.errors[message] += 1
            else:
                load.seconds.append(time.monotonic() - start)
    connection.close()


def _status(connection: http.client.HTTPConnection, query: str) -> int:
    """Ask once; return the status. A refusal of the query itself (422) is an answer."""
    body = json.dumps({"query": query})
    connection.request("POST", "/api/search", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    response.read()
    return 200 if response.status == 422 else response.status


def resident(pid: int) -> float:
    """Return the memory of a process and its children in MiB, shared pages counted once; 0 where it is unknown."""
    pids = family(pid)
    if len(pids) == 1:
        return process_memory("VmRSS", process=pid) / 2**20
    return sum(process_memory("Pss", process=one, file="smaps_rollup") for one in pids) / 2**20


def summary(load: Load, memory: list[float], clients: int, seconds: float) -> dict[str, object]:
    """Return the figures of a run.

    >>> summary(Load([0.1, 0.3]), [100.0, 101.0, 102.0], 2, 1.0)["p50_ms"]
    200
    """
    p50, p95 = (round(1000 * float(np.percentile(load.seconds or [0.0], part))) for part in (50, 95))
    return {
        "clients": clients,
        "seconds": seconds,
        "answers": len(load.seconds),
        "answers_per_second": round(len(load.seconds) / seconds, 1),
        "errors": load.errors.total(),
        "busy": load.busy,
        "p50_ms": p50,
        "p95_ms": p95,
        "memory": {"first": round(memory[len(memory) // 10]), "last": round(memory[-1]), "peak": round(max(memory))},
    }
