"""ASGI middleware that answers unknown addresses with a page of ours."""

import re

from starlette.responses import HTMLResponse, RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from graphcredit.store.log_text import in_html
from graphcredit.viewer.sitemap import PAGES

_FIRST = next(iter(PAGES))
_ADDRESS = re.compile(r"/(?!_)[^.]*")
"""Paths of pages, and of nothing that Streamlit serves itself."""
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>No such page</title>
<style>:root { color-scheme: light dark }
body { font: 16px/1.6 system-ui, sans-serif; margin: 3rem }
</style></head><body><h1>There is no page %s here</h1><p>There are:</p><ul>%s</ul></body></html>"""


class OwnPages:
    """ASGI middleware that answers 404 with a list of the pages where a browser asks for another.

    The first page is the root of the site; its name leads there.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        answer = self._app
        if scope["type"] == "http" and b"text/html" in dict(scope["headers"]).get(b"accept", b""):
            answer = _answer(scope["path"], scope["query_string"].decode("latin-1")) or self._app
        await answer(scope, receive, send)


def _answer(path: str, query: str) -> ASGIApp | None:
    name = path.strip("/")
    if name == _FIRST:
        return RedirectResponse(f"/?{query}")
    if not name or name in PAGES or not _ADDRESS.fullmatch(path):
        return None
    links = "".join(
        f'<li><a href="/{"" if page == _FIRST else page}">{title}</a></li>'
        for page, title in PAGES.items()
    )
    return HTMLResponse(_PAGE % (in_html(path), links), status_code=404)
