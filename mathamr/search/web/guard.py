"""Guard between the network and the page: requests of other sites and of any size stay outside.

A page on this machine is within reach of every web site that its user visits. So a request is refused when

- its ``Host`` is a name that is not ours: by DNS rebinding a foreign name may point to this machine. An address in
  numbers cannot be rebound and is let through;
- a browser says that another site has sent it (``Origin``, ``Sec-Fetch-Site``);
- it posts something else than JSON, or more than :data:`MAX_BODY` bytes, or its body takes longer than
  :data:`READ_SECONDS` to arrive.

Every response carries headers by which a browser runs and loads only what comes from here, and makes no markup of text.

>>> host_name("[::1]:8000"), host_name("Localhost:8000"), host_name("127.0.0.1")
('::1', 'localhost', '127.0.0.1')
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mathamr.search.web.mathlive import EDITOR

MAX_BODY = 1 << 20  # bytes; a query of 100,000 characters gets through, to be told how long it may be
READ_SECONDS = 10.0  # for a body to arrive
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
    "img-src 'self'; connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
# The frame with the formula editor has no text of posts. Its program sets HTML and style attributes, and no script.
EDITOR_HEADERS = HEADERS | {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "style-src-attr 'unsafe-inline'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Frame-Options": "SAMEORIGIN",
}


class Guard:
    """An application behind the rules of this module. ``names`` are its hosts' names, with ``localhost``."""

    def __init__(self, app: ASGIApp, names: Collection[str] = ()) -> None:
        self._app = app
        self._names = {"localhost", *(name.lower() for name in names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no web sockets here: the server closes the connection

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(EDITOR_HEADERS if scope["path"] == EDITOR else HEADERS)
            await send(message)

        refusal = self._refusal(scope["method"], Headers(scope=scope))
        if refusal is None and scope["method"] == "POST":
            try:
                body = await asyncio.wait_for(_read(receive), READ_SECONDS)
            except TimeoutError:
                body, refusal = b"", (408, f"the request took longer than {READ_SECONDS:g} s to arrive; send it again")
            if body is None:
                refusal = 413, f"the request is longer than {MAX_BODY:,} bytes; shorten the query"
            elif refusal is None:
                receive = _replay(body, receive)
        if refusal is not None:
            status, message = refusal
            await JSONResponse({"error": message}, status)(scope, receive, with_headers)
            return
        await self._app(scope, receive, with_headers)

    def _refusal(self, method: str, headers: Headers) -> tuple[int, str] | None:
        """Return status and message for a request that its head refuses."""
        hosts = headers.getlist("host")
        name = host_name(hosts[0]) if len(hosts) == 1 else ""
        if name not in self._names and not _is_address(name):
            return 403, (
                f"this page does not go by the name {name!r}; open it by the machine's address, "
                "or start the server with host=NAME"
            )
        origin = headers.get("origin")
        foreign = origin is not None and origin.partition("://")[2] != hosts[0]
        if method not in ("GET", "HEAD") and (
            foreign or headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
        ):
            return 403, "requests of other sites are not answered"
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if method == "POST" and kind != "application/json":
            return 415, f"the body is of type {kind!r}; send application/json"
        return None


def host_name(host: str) -> str:
    """Return the name or address in a ``Host`` header, without port and brackets, in lower case."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


async def _read(receive: Receive) -> bytes | None:
    """Return the body of a request; None if it is longer than :data:`MAX_BODY`, or the client has gone."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > MAX_BODY:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return ``receive`` for an application that has not read the body yet."""
    pending = [body]

    async def replay() -> Message:
        if pending:
            return {"type": "http.request", "body": pending.pop(), "more_body": False}
        return await receive()

    return replay
