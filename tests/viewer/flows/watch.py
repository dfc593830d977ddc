"""What a page did besides what it showed."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import Dialog, Page


@dataclass(kw_only=True, slots=True)
class Watch:
    """Everything that a page asked for, said aloud or failed at."""

    requests: list[str] = field(default_factory=list)
    """Addresses of all requests, those of sockets too."""
    dialogs: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Uncaught errors of scripts."""

    def over(self, page: Page) -> None:
        """Watch a page, from now on."""
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("websocket", lambda socket: self.requests.append(socket.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", lambda dialog: self._dismiss(dialog))

    def must_be_calm(self, url: str) -> None:
        """Fail unless the page asked nobody but the server, and neither spoke nor failed."""
        outside = {request for request in self.requests if not _is_at_home(request, url)}
        assert outside == set()
        assert self.dialogs == []
        assert self.errors == []

    def _dismiss(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()


def _is_at_home(request: str, url: str) -> bool:
    asked = urlsplit(request)
    return asked.scheme in ("data", "blob", "file") or asked.netloc == urlsplit(url).netloc
