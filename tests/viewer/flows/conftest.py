"""A viewer that was started by its command, and Debian's Chromium to look at it."""

import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from graphcredit.store import Store
from tests.viewer.flows.watch import Watch
from tests.viewer.stores import corridors, credited, hostile, house, learned, two_tasks
from tests.worlds import worked_example

_PATIENCE = 120_000
"""Milliseconds that a condition may take to come true: the machine may be busy."""

_ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--process-per-site",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a store with a run to look at, a long one, and hostile text."""
    root = tmp_path_factory.mktemp("flows") / "s"
    credited(root, hostile(), names=("graphgpo", "gigpo"), run_id="hostile")
    credited(root, corridors(), names=("gigpo", "graphgpo"), run_id="long")
    credited(root, learned(), names=("gigpo", "graphgpo"), run_id="long", iteration=1)
    credited(root, house(), names=("gigpo", "graphgpo"), run_id="house")
    credited(root, worked_example(), names=("gigpo", "graphgpo"), run_id="r0", iteration=0)
    return credited(root, two_tasks(), names=("gigpo", "graphgpo"), run_id="r0", iteration=1)


@pytest.fixture(scope="session")
def url(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the store with `graphcredit view`; return where."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "graphcredit.cli.main", "view", str(store.root)]
    log = tmp_path_factory.mktemp("viewer") / "log.txt"
    with (
        log.open("w") as sink,
        subprocess.Popen([*command, "--port", str(port)], stdout=sink, stderr=sink) as server,
    ):
        try:
            _wait(f"http://127.0.0.1:{port}/_stcore/health", server, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
    assert "Traceback" not in log.read_text()


def _wait(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(1800):
        assert server.poll() is None, log.read_text()
        try:
            urllib.request.urlopen(address, timeout=5).close()
        except OSError:  # nobody is there yet, or too slow
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"the server must answer within three minutes:\n{log.read_text()}")


# Of this folder, not of the session: an open browser leaves an event loop in the test's thread.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Return a browser that knows no host but this machine."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.fail(
            "the viewer is tested in Debian's Chromium, which is not installed: "
            'apt-get install chromium, or leave these tests out with -m "not browser"',
            pytrace=False,
        )
    expect.set_options(timeout=_PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def watch() -> Watch:
    """Return what the browser did behind the test's back."""
    return Watch()


# One context and one process, which ends with its last tab: Streamlit's scripts take seconds to
# compile, and stay compiled.
@pytest.fixture(scope="package")
def context(browser: Browser, url: str) -> Iterator[BrowserContext]:
    """Return a window of the browser."""
    viewport = {"width": 1600, "height": 1000}
    with browser.new_context(base_url=url, viewport=viewport) as context:
        context.set_default_timeout(_PATIENCE)
        context.new_page().goto("/_stcore/health")
        yield context


@pytest.fixture
def page(context: BrowserContext, url: str, watch: Watch) -> Iterator[Page]:
    """Return a tab; at the end, nothing must have left loopback."""
    page = context.new_page()
    watch.over(page)
    yield page
    page.close()
    watch.must_be_calm(url)
