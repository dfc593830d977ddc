"""Times the viewer's Graph page in Debian's Chromium, for graphs of four sizes.

    python -m benchmarks.graph_page [--states 50 500 2000 5000] [--repeats 3]

Each visit is a fresh browser without a cache. `picture` is the time from the address until the
states of the graph have been painted, `whole` that until its transitions have been, too, both by
the browser's clock and with the start of Streamlit's own scripts; the median of the visits.
`CPU` is all CPU time of the page's main thread until it is whole, the median too.
`blocked` is the longest time in which the page could do nothing else, the worst of all visits, and
`of CPU` the longest CPU time of one task of the page: on a busy machine, the first has what other
programs did meanwhile. `dragged` is the same CPU time while the graph is dragged and zoomed. `sql`
has no graph: it is what Streamlit alone takes. `load` is the system's load average. It needs the
package playwright.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.machine import describe
from benchmarks.maze import size_of_graph, write_maze
from benchmarks.viewer import CHROMIUM, FINISHED, WATCH, assign_credit, count_bytes, served

_FINISHED = f"document.querySelector({json.dumps(FINISHED)}) && performance.now()"
_PAINTED = "performance.getEntriesByName('graphcredit-NAME')[0]?.startTime"
_OF_GRAPH = (_PAINTED.replace("NAME", "picture"), _PAINTED.replace("NAME", "whole"))
PAGES = (
    ("sql", (_FINISHED, _FINISHED)),
    ("graph", _OF_GRAPH),
    ("graph?view=everything", _OF_GRAPH),
)
"""Page, and what tells the milliseconds of its first picture, and those when it is whole. The page
is asked in each frame: Playwright's own waiting looks every half a second only."""

HEADS = ("picture s", "whole s", "CPU s", "blocked s", "of CPU s", "dragged s", "MB")


class Visit(NamedTuple):
    """Seconds of a visit, and megabytes, as in `HEADS`."""

    picture: float
    whole: float
    total: float
    blocked: float
    cpu: float
    dragged: float
    megabytes: float


def main() -> None:
    """Print a row for each size of the graph and each page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, nargs="+", default=[50, 500, 2000, 5000])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print(describe())
    for states in options.states:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "store"
            store = write_maze(root, states)
            assign_credit(root)
            title = f"{size_of_graph(store)}, load {os.getloadavg()[0]:.1f}"
            print(f"\n{title:<48}" + "".join(f"{head:>11}" for head in HEADS))
            visit_all(root, options.repeats)


def visit_all(root: Path, repeats: int) -> None:
    """Print a row for each page of a store."""
    from playwright.sync_api import sync_playwright

    with served(root) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for page, moments in PAGES:
            visit(browser, f"{address}/{page}", moments)  # the server loads its modules
            visits = [visit(browser, f"{address}/{page}", moments) for _ in range(repeats)]
            columns = list(zip(*visits, strict=True))
            row = [
                *map(median, columns[:3]),
                *map(max, columns[3:6]),
                median(columns[6]),
            ]
            print(f"{page:<48}" + "".join(f"{value:>11.2f}" for value in row), flush=True)
        browser.close()


def visit(browser: Any, address: str, moments: tuple[str, str]) -> Visit:
    """Open a page, wait for its graph, and move it about; for `moments` see `PAGES`."""
    visitor = browser.new_context(viewport={"width": 1500, "height": 1000})
    tab = visitor.new_page()
    loaded = count_bytes(visitor.new_cdp_session(tab))
    tab.add_init_script(WATCH)
    browser.start_tracing(page=tab, categories=["toplevel"])
    tab.goto(address)
    first, last = (
        tab.wait_for_function(each, timeout=120_000).json_value() / 1000 for each in moments
    )
    _painted(tab)
    blocked = tab.evaluate("blocked") / 1000
    opened = tasks_of(browser.stop_tracing())
    tab.wait_for_load_state("networkidle")
    browser.start_tracing(page=tab, categories=["toplevel"])
    if tab.locator(".graph .canvas").count():
        _drag(tab)
    dragged = tasks_of(browser.stop_tracing())
    visitor.close()
    return Visit(
        picture=first,
        whole=last,
        total=sum(opened),
        blocked=blocked,
        cpu=max(opened, default=0.0),
        dragged=max(dragged, default=0.0),
        megabytes=sum(loaded) / 1e6,
    )


def tasks_of(trace: bytes) -> list[float]:
    """Return the CPU seconds of each task of a page's main thread, from Chromium's trace."""
    events = json.loads(trace)["traceEvents"]
    mains = {
        (event["pid"], event["tid"])
        for event in events
        if event.get("name") == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    found = sorted(
        (event["pid"], event["tid"], event["ts"], -event["dur"], event["tdur"])
        for event in events
        if event.get("ph") == "X" and "tdur" in event and (event["pid"], event["tid"]) in mains
    )
    seconds: list[float] = []
    ended: dict[tuple[int, int], int] = {}
    for process, thread, start, negative, taken in found:
        # A task within another one is a part of it.
        if start >= ended.get((process, thread), start):
            ended[process, thread] = start - negative
            seconds.append(taken / 1e6)
    return seconds


def _drag(tab: Any) -> None:
    box = tab.locator(".graph .canvas").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tab.mouse.move(x, y)
    tab.mouse.down()
    for step in range(12):
        tab.mouse.move(x + 12 * step, y + 5 * step)
    tab.mouse.up()
    tab.mouse.wheel(0, -240)
    _painted(tab)
    tab.wait_for_timeout(500)


def _painted(tab: Any) -> None:
    tab.evaluate("new Promise((go) => requestAnimationFrame(() => setTimeout(go)))")


if __name__ == "__main__":
    main()
