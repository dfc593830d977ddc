"""JSON over HTTP with a vLLM server: no proxy, no redirect, and a bounded number of attempts."""

import time
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

import orjson

from graphcredit.store.errors import EngineError, OptionError

ATTEMPTS = 3
"""How often a request is sent whose connection fails."""

_PAUSE_SECONDS = 1.0
_UNAVAILABLE = 503
_REASON_LENGTH = 300
"""Most characters of a server's message to show."""
_START = "Start it with VLLM_SERVER_DEV_MODE=1 and --enable-scale-out, as docs/policies.md says"


def checked_url(url: str) -> str:
    """Return the URL of a server, without a slash at its end."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    rest = (parts.path.strip("/"), parts.query, parts.fragment, parts.username, parts.password)
    if parts.scheme not in ("http", "https") or not parts.hostname or not port or any(rest):
        raise OptionError(
            "the server of vllm-server:PATH@SERVER must be the URL of a vLLM server, "
            f"http://HOST:PORT, for example http://127.0.0.1:8000: got {url!r}"
        )
    return f"{parts.scheme}://{parts.netloc}"


def exchange(
    url: str, path: str, body: Any = None, *, seconds: float, attempts: int = ATTEMPTS
) -> Any:
    """Return a server's answer, parsed.

    Args:
        url: The server, as `checked_url` returns it.
        path: What is asked for, from the slash on.
        body: What is sent, by POST; None asks by GET.
        seconds: How long to wait for the answer.
        attempts: How often to send the request if the connection fails or the server is not
            available. More than 1 is for requests that may arrive twice.

    Raises:
        EngineError: The server does not answer, or answers with an error.
    """
    for left in reversed(range(attempts)):
        try:
            status, answer = _sent(url, path, body, seconds)
        except TimeoutError as error:
            raise EngineError(
                f"the vLLM server must answer within {seconds:g} s: {url}{path} did not. "
                "Look at its log; if it is overloaded, lower --concurrency. Then give the same "
                "command again"
            ) from error
        except (OSError, HTTPException) as error:
            if not left:
                raise EngineError(
                    f"a vLLM server must be running at {url}: "
                    f"{str(error) or type(error).__name__}, {attempts} times. Start it as "
                    "docs/policies.md says, or name another one. Then give the same command again"
                ) from error
        else:
            if status != _UNAVAILABLE or not left:
                return _parsed(url, path, status, answer)
        time.sleep(_PAUSE_SECONDS)
    raise AssertionError("attempts must be at least 1")


def _sent(url: str, path: str, body: Any, seconds: float) -> tuple[int, bytes]:
    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=seconds)
    try:
        if body is None:
            connection.request("GET", path)
        else:
            json = {"Content-Type": "application/json"}
            connection.request("POST", path, orjson.dumps(body), json)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _parsed(url: str, path: str, status: int, answer: bytes) -> Any:
    """Return the JSON of an answer; an empty one is None."""
    text = " ".join(answer.decode(errors="replace").split())[:_REASON_LENGTH]
    if status != 200:
        is_unknown = status in (403, 404, 405)
        remedy = f"Is it vLLM 0.32 or later? {_START}" if is_unknown else "Look at its log"
        raise EngineError(
            f"the vLLM server must answer {path} with status 200: {url} answered {status}, "
            f"{text!r}. {remedy}, then give the same command again"
        )
    try:
        return orjson.loads(answer) if answer else None
    except orjson.JSONDecodeError as error:
        raise EngineError(
            f"the vLLM server must answer {path} with JSON: {url} answered {text!r}. Is it vLLM's?"
        ) from error
