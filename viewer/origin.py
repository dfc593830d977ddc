"""ASGI middleware that refuses requests from other origins, and forbids frames."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
App = Callable[[Event, Receive, Send], Awaitable[None]]
"""An ASGI application."""

_HEADERS = ((b"content-security-policy", b"frame-ancestors 'none'"), (b"x-frame-options", b"DENY"))
"""Headers of every response, which forbid other pages to show ours in a frame."""

_PAGE_SCHEMES = {"ws": "http", "wss": "https"}


class OwnOrigin:
    """ASGI middleware that answers 403 to requests from pages of another origin.

    A browser sends the page's origin in `Origin` and the address of the server in `Host`, and pages
    cannot change them. They match only for our own origin, also if a port is forwarded. (Streamlit
    itself accepts every port of this machine.) Clients that are not browsers send no `Origin`.
    """

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
        elif _is_own(scope):
            await self._app(scope, receive, _unframed(send))
        elif scope["type"] == "websocket":
            # Servers answer 403 if a websocket is closed before it was accepted.
            await send({"type": "websocket.close", "code": 1008})
        else:
            await send({"type": "http.response.start", "status": 403, "headers": [*_HEADERS]})
            await send({"type": "http.response.body", "body": b"This page is of another origin."})


def _is_own(scope: Mapping[str, Any]) -> bool:
    headers = scope["headers"]
    hosts = [value for name, value in headers if name == b"host"]
    scheme = _PAGE_SCHEMES.get(scope["scheme"], scope["scheme"])
    own = {f"{scheme}://".encode() + host for host in hosts}
    return own >= {value for name, value in headers if name == b"origin"}


def _unframed(send: Send) -> Send:
    async def send_with_headers(message: Event) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *_HEADERS]}
        await send(message)

    return send_with_headers
