"""Time every page of the viewer against a trivial Streamlit page, and count labels that overlap.

    apt-get install chromium
    python -m benchmarks.viewer

The log has a task for each of some numbers of states: walks over a grid, of which a third reach the
goal. A page counts as shown when its script is done and nothing is on its way.
"""

import json
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import BrowserContext, Page, expect, sync_playwright

from benchmarks.machine import describe, run_graphcredit
from tools.screenshots import VIEW, serving

SIZES = (30, 100, 300, 2000)
REPEATS = 5
TRIVIAL = 'import streamlit as st\nst.header("Trivial")\nst.write("Hello")\n'
PAGES = ("runs", "tasks", "graph", "trajectory", "sql")

OVERLAPPING = """root => {
  const MARGIN = 4, cy = root[Symbol.for("graphcredit.graph")].cy;
  const only = { includeNodes: false, includeEdges: false, includeOverlays: false };
  const boxes = cy.elements().filter(each => each.data("label")).map(each =>
    each.boundingBox({ ...only, includeLabels: true })).filter(box => box.w > 0 && box.h > 0);
  const overlap = (a, b) => Math.min(b.x2 - a.x1, a.x2 - b.x1, b.y2 - a.y1, a.y2 - b.y1) > MARGIN;
  const hidden = boxes.filter((a, i) => boxes.some((b, j) => i < j && overlap(a, b)));
  return [boxes.length, hidden.length];
}"""
"""Labels of a drawing, and those that overlap a later one by more than the margin that is added."""


def main() -> None:
    """Print the tables."""
    print(describe())
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        store = _make_store(Path(folder))
        trivial = Path(folder) / "trivial.py"
        trivial.write_text(TRIVIAL)
        arguments = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        with (
            serving(*VIEW, store, "--port") as viewer,
            serving(
                *("-m", "streamlit", "run", trivial, "--server.headless=true"),
                *("--server.address=127.0.0.1", "--server.port"),
            ) as plain,
        ):
            _times(context, viewer, plain)
            print("\n| states | labels | overlapping |\n| --- | --- | --- |")
            for size in SIZES[:-1]:
                page = _open(context, _address(viewer, "graph", size, view="everything"))
                print(f"| {size} | {' | '.join(map(str, _graph(page).evaluate(OVERLAPPING)))} |")
                page.close()
        browser.close()


def _times(context: BrowserContext, viewer: str, plain: str) -> None:
    """Print the time of each page, and its ratio to the trivial page, which is timed beside it."""
    print("\n| page | s | trivial, s | ratio |\n| --- | --- | --- | --- |")
    addresses = {name: _address(viewer, name, SIZES[1]) for name in PAGES}
    addresses["graph, 2,000 states, All"] = _address(viewer, "graph", SIZES[-1], view="everything")
    for name, address in addresses.items():
        # The first time, caches are filled.
        pairs = [(_seconds(context, plain), _seconds(context, address)) for _ in range(REPEATS + 1)]
        floor, taken = (median(times) for times in zip(*pairs[1:], strict=True))
        ratio = median(page / trivial for trivial, page in pairs[1:])
        print(f"| {name} | {taken:.2f} | {floor:.2f} | {ratio:.1f} |", flush=True)


def _make_store(folder: Path) -> Path:
    """Return a store with a task for each size, and credit by two estimators."""
    log, store = folder / "log.jsonl", folder / "store"
    log.write_text("".join(f"{json.dumps(row)}\n" for size in SIZES for row in _walks(size)))
    run_graphcredit("import", log, store)
    run_graphcredit("credit", store, "-e", "reach", "-e", "grpo")
    return store


def _walks(size: int) -> Iterator[dict[str, Any]]:
    """Yield the steps of walks over a grid, each to a new place, until all were visited."""
    chance = random.Random(size)
    width = round(size**0.5)
    unseen, number = set(range(size)), 0
    while unseen:
        place, won, target = 0, number % 3 == 0, chance.choice([*unseen])
        length = target // width + target % width + 3
        for step in range(length):
            ways = {"left": -1, "right": 1, "up": -width, "down": width}
            there = {way: place + by for way, by in ways.items() if 0 <= place + by < size}
            right, down = target % width - place % width, target // width - place // width
            wanted = "right" if right > 0 else "left" if right < 0 else "down" if down > 0 else "up"
            action = wanted if wanted in there else chance.choice([*there])
            is_last = step == length - 1
            yield {
                "task": f"grid-{size}",
                "episode": f"{size}-{number}",
                "t": step,
                "obs": f"place {place}, row {place // width}",
                "action": action,
                "reward": float(won and is_last),
                "done": is_last,
                "success": won if is_last else None,
            }
            unseen.discard(place)
            place = there[action]
        number += 1


def _address(viewer: str, name: str, size: int, **more: str) -> str:
    place = {"run": "imported", "iteration": "0", "task": f"grid-{size}", "estimator": "reach"}
    chosen = {"q": "SELECT * FROM groups"} if name == "sql" else place | more
    return f"{viewer}/{'' if name == 'runs' else name}?{urlencode(chosen)}"


def _seconds(context: BrowserContext, address: str) -> float:
    """Return the time until a page is shown."""
    start = time.perf_counter()
    _open(context, address).close()
    return time.perf_counter() - start


def _open(context: BrowserContext, address: str) -> Page:
    page = context.new_page()
    page.set_default_timeout(120_000)
    expect.set_options(timeout=120_000)
    page.goto(address)
    expect(page.get_by_role("heading", level=2).first).to_be_visible()
    done = ("data-test-script-state", "notRunning")
    expect(page.get_by_test_id("stApp")).to_have_attribute(*done)
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
    if "/graph?" in address:
        _graph(page).wait_for()
    return page


def _graph(page: Page) -> Any:
    return page.locator(".graph[data-ready]")


if __name__ == "__main__":
    main()
