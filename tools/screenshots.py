"""Take a picture of every page of the viewer, light and dark; the result is committed.

    apt-get install chromium
    python tools/screenshots.py STORE docs

The store is made first, if it is not there: six iterations of a service with tools, asked by a
policy that errs less in each.
"""

import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode
from urllib.request import urlopen

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

VIEW = ("-m", "graphcredit.cli.main", "view")
WIDTH = 1280
PATIENCE = 60_000
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")

ERRORS = (0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
"""Share of random actions in each iteration."""

PLACE = {"run": "tools", "iteration": 3, "estimator": "reach"}
TASK = "tools-w1-s4"
LOST = PLACE | {"task": TASK, "trajectory": f"{TASK}:6"}

PICTURES = {
    "runs": ("", PLACE, 480),
    "tasks": ("tasks", PLACE, 820),
    "graph": ("graph", LOST, 1120),
    "trajectory": ("trajectory", LOST, 1120),
    "search": ("search", {"find": "refunded"}, 820),
}
"""Name to the path of a page, what is selected there, and the height in pixels."""


def main() -> None:
    """Make the store and write the pictures: the two paths of the command line."""
    store, folder = map(Path, sys.argv[1:])
    make_store(store)
    with serving(*VIEW, store, "--port") as address, sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
        for scheme in SCHEMES:
            take(browser, address, scheme, folder)
        browser.close()


def make_store(store: Path) -> None:
    """Play what has not been played yet, and assign credit."""
    play = f"collect {store} --group-size 8"
    for iteration, share in enumerate(ERRORS):
        service = "--env tools --tasks 12 --run tools"
        run(f"{play} {service} --iteration {iteration} --policy oracle:{share}")
    run(f"credit {store} --run tools -e grpo -e gigpo -e graphgpo -e reach")


def run(command: str) -> None:
    """Run a command of graphcredit that knows the service."""
    subprocess.run([sys.executable, "-m", "experiments.tool_world", *command.split()], check=True)


@contextmanager
def serving(*arguments: object) -> Generator[str]:
    """Serve pages as long as the block runs; yield their address.

    Args:
        arguments: Of Python; a free port is put behind them.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, *map(str, arguments), str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            while server.poll() is None and not is_up(address):
                time.sleep(0.2)
            yield address
        finally:
            server.terminate()


def is_up(address: str) -> bool:
    """Return whether a server of Streamlit answers."""
    try:
        urlopen(f"{address}/_stcore/health", timeout=5).close()
    except OSError:
        return False
    return True


def take(browser: Browser, address: str, scheme: Literal["light", "dark"], folder: Path) -> None:
    """Take the pictures in one colour scheme, in as few colours as do."""
    with browser.new_context(color_scheme=scheme) as context:
        page = context.new_page()
        for name, (path, selected, height) in PICTURES.items():
            page.set_viewport_size({"width": WIDTH, "height": height})
            page.goto(f"{address}/{path}?{urlencode(selected)}")
            wait_until_drawn(page)
            if path == "graph":
                page.locator(".graph[data-ready]").wait_for()
            picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
            reduced = picture.quantize(method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
            reduced.save(folder / f"viewer-{name}-{scheme}.png", optimize=True)


def wait_until_drawn(page: Page) -> None:
    """Wait until the script is done and nothing is on its way."""
    expect(page.get_by_role("heading", level=2).first).to_be_visible(timeout=PATIENCE)
    done = ("data-test-script-state", "notRunning")
    expect(page.get_by_test_id("stApp")).to_have_attribute(*done, timeout=PATIENCE)
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0, timeout=PATIENCE)
    page.wait_for_load_state("networkidle")


if __name__ == "__main__":
    main()
