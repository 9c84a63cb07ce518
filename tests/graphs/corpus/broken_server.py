"""A web server on 127.0.0.1 that does what servers do: breaks off, lies about sizes, ignores ranges, redirects."""

from __future__ import annotations

import re
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Served:
    """One file, and what the server does wrong with it.

    ``breaks``: bytes of the body after which each of the next GETs is cut off. ``announces``: the Content-Length of
    HEAD; ``sends``: that of GET. ``statuses``: answers before the file is given. ``chunked``: no Content-Length.
    """

    body: bytes
    tag: str = '"1"'
    breaks: list[int] = field(default_factory=list)
    announces: int | None = None
    sends: int | None = None
    ranges: bool = True
    conditions: bool = True
    statuses: list[int] = field(default_factory=list)
    redirect: str = ""
    chunked: bool = False


@dataclass
class Server:
    base: str
    files: dict[str, Served]
    asked: list[tuple[str, str, str]] = field(default_factory=list)  # method, path, range


@contextmanager
def serve(files: dict[str, Served]) -> Iterator[Server]:
    """Serve ``files`` (path: file) below ``base`` as long as the block runs; other paths are answered with 404."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self.answer(head=True)

        def do_GET(self) -> None:
            self.answer(head=False)

        def answer(self, head: bool) -> None:
            path = urllib.parse.unquote(self.path).removeprefix("/data/")
            asked = self.headers.get("Range", "")
            server.asked.append((self.command, path, asked))
            file = server.files.get(path)
            if file is None:
                return self.refuse(404)
            if file.redirect:
                self.send_response(302)
                self.send_header("Location", file.redirect)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return None
            if file.statuses:
                return self.refuse(file.statuses.pop(0))
            start = 0
            match = re.fullmatch(r"bytes=(\d+)-", asked)
            same = not file.conditions or self.headers.get("If-Range", file.tag) == file.tag
            if match and file.ranges and same:
                start = int(match[1])
                if start >= len(file.body):
                    return self.refuse(416)
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{len(file.body) - 1}/{len(file.body)}")
            else:
                self.send_response(200)
            body = file.body[start:]
            length = len(body)
            if head and file.announces is not None:
                length = file.announces
            elif not head and file.sends is not None:
                length = file.sends - start
            if file.chunked:
                self.send_header("Transfer-Encoding", "chunked")
                body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
            else:
                self.send_header("Content-Length", str(length))
            if file.tag:
                self.send_header("ETag", file.tag)
            self.end_headers()
            if head:
                return None
            if file.breaks:
                body = body[: file.breaks.pop(0)]
                self.close_connection = True
            if len(body) < length:
                self.close_connection = True
            with suppress(ConnectionError):  # the client has enough
                self.wfile.write(body)
            return None

        def refuse(self, status: int) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    server = Server(f"http://127.0.0.1:{listening.server_address[1]}/data/", files)
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()
