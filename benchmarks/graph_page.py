"""Times the viewer's Graph page in Debian's Chromium, for graphs of four sizes.

    python -m benchmarks.graph_page [--states 50 500 2000 5000] [--repeats 3]

The graph is that of a task in a long maze. Each visit is a fresh browser without a cache. `picture`
is the time from the address until the states of the graph have been painted, `whole` that until its
transitions have been, too, both by the browser's clock and with the start of Streamlit's own
scripts. `CPU` is all CPU time of the page's main thread until it is whole. These are medians of the
visits. `task` is the longest CPU time of one task of the page in any visit: so long it could do
nothing else. `sql` has no graph: it is what Streamlit alone takes. `load` is the system's load
average. It needs the package playwright.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from urllib.request import urlopen

import numpy as np
import pyarrow as pa

from benchmarks.machine import describe
from benchmarks.viewer import assign_credit
from graphcredit.store import Store, create_store
from graphcredit.store.files.tables import write_table
from graphcredit.store.schema import STEP_SCHEMA
from graphcredit.store.sql.catalog import run_trusted_query

CHROMIUM = "/usr/bin/chromium"
_FINISHED = (
    "document.querySelector('[data-testid=stApp][data-test-script-state=notRunning]')"
    " && performance.now()"
)
_PAINTED = "performance.getEntriesByName('graphcredit-NAME')[0]?.startTime"
_OF_GRAPH = (_PAINTED.replace("NAME", "picture"), _PAINTED.replace("NAME", "whole"))
PAGES = (
    ("sql", (_FINISHED, _FINISHED)),
    ("graph", _OF_GRAPH),
    ("graph?view=everything", _OF_GRAPH),
)
"""Page, and what tells the milliseconds of its first picture, and those when it is whole. The page
is asked in each frame: Playwright's own waiting looks every half a second only."""

NUM_WALKS = 96


class Visit(NamedTuple):
    """Seconds of a visit, as in the table."""

    picture: float
    whole: float
    cpu: float
    task: float


def main() -> None:
    """Print a row for each size of the graph and each page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, nargs="+", default=[50, 500, 2000, 5000])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print(describe())
    for states in options.states:
        with tempfile.TemporaryDirectory() as folder:
            store = write_maze(Path(folder) / "store", states)
            assign_credit(store.root)
            title = f"{_size_of_graph(store)}, load {os.getloadavg()[0]:.1f}"
            print(f"\n{title:<48}" + "".join(f"{f'{head} s':>11}" for head in Visit._fields))
            visit_all(store.root, options.repeats)


def visit_all(root: Path, repeats: int) -> None:
    """Print a row for each page of a store."""
    from playwright.sync_api import sync_playwright

    with _served(root) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for page, moments in PAGES:
            visit(browser, f"{address}/{page}", moments)  # the server loads its modules
            visits = [visit(browser, f"{address}/{page}", moments) for _ in range(repeats)]
            *medians, tasks = zip(*visits, strict=True)
            row = [*map(median, medians), max(tasks)]
            print(f"{page:<48}" + "".join(f"{value:>11.2f}" for value in row), flush=True)
        browser.close()


def visit(browser: Any, address: str, moments: tuple[str, str]) -> Visit:
    """Open a page and wait for its graph; for `moments` see `PAGES`."""
    visitor = browser.new_context(viewport={"width": 1500, "height": 1000})
    tab = visitor.new_page()
    browser.start_tracing(page=tab, categories=["toplevel"])
    tab.goto(address)
    picture, whole = (
        tab.wait_for_function(each, timeout=120_000).json_value() / 1000 for each in moments
    )
    tab.evaluate("new Promise((go) => requestAnimationFrame(() => setTimeout(go)))")
    tasks = tasks_of(browser.stop_tracing())
    visitor.close()
    return Visit(picture=picture, whole=whole, cpu=sum(tasks), task=max(tasks, default=0.0))


def tasks_of(trace: bytes) -> list[float]:
    """Return the CPU seconds of each task of a page's main thread, from Chromium's trace."""
    events = json.loads(trace)["traceEvents"]
    mains = {
        (event["pid"], event["tid"])
        for event in events
        if event.get("name") == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    runs = sorted(
        (event["pid"], event["tid"], event["ts"], -event["dur"], event["tdur"])
        for event in events
        if event.get("ph") == "X" and "tdur" in event and (event["pid"], event["tid"]) in mains
    )
    seconds: list[float] = []
    ended: dict[tuple[int, int], int] = {}
    for process, thread, start, negative, taken in runs:
        # A task within another one is a part of it.
        if start >= ended.get((process, thread), start):
            ended[process, thread] = start - negative
            seconds.append(taken / 1e6)
    return seconds


@contextmanager
def _served(root: Path) -> Generator[str]:
    """Start a viewer of a store at a free port; yield its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "graphcredit.cli.main", "view", str(root), "--port", str(port)]
    address = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(300):
                try:
                    urlopen(f"{address}/_stcore/health", timeout=5).close()
                    break
                except OSError:
                    time.sleep(0.1)
            yield address
        finally:
            server.terminate()


def write_maze(root: Path, num_states: int) -> Store:
    """Write a store of one task: walks through a long maze whose rooms have three doors each.

    Args:
        root: Path of the store.
        num_states: Rooms of the maze; the walks of a large one miss some of them.
    """
    store, rng, horizon = create_store(root), np.random.default_rng(0), max(150, num_states // 10)
    steps = rng.integers(1, 40, (num_states, 3)) * rng.choice(
        [-1, 1], (num_states, 3), p=[0.1, 0.9]
    )
    doors = np.clip(np.arange(num_states)[:, None] + steps, 0, num_states)
    rows: list[dict[str, Any]] = []
    for walk in range(NUM_WALKS):
        room = 0
        for step in range(horizon):
            door = int(rng.integers(3))
            entered = int(doors[room, door])
            won, is_last = entered == num_states, entered == num_states or step == horizon - 1
            rows.append(
                dict.fromkeys(STEP_SCHEMA.names)
                | {
                    "task_id": "maze",
                    "trajectory_id": f"walk-{walk:02d}",
                    "step_index": step,
                    "state": f"-= Room {room} =-\nThree doors lead on.",
                    "next_state": f"-= Room {entered} =-\nThree doors lead on.",
                    "action": f"open door {door}",
                    "is_action_valid": True,
                    "reward": float(won),
                    "cost": 1.0,
                    "terminated": won,
                    "truncated": is_last and not won,
                    "success": won if is_last else None,
                    "worker_id": "w0",
                    "logged_at": len(rows),
                }
            )
            room = entered
            if is_last:
                break
    path = store.steps_dir("r0", 0) / "w0-000000.parquet"
    path.parent.mkdir(parents=True)
    write_table(pa.Table.from_pylist(rows, STEP_SCHEMA), path)
    return store


def _size_of_graph(store: Store) -> str:
    sql = """
        SELECT (SELECT count(*) FROM nodes),
            (SELECT count(DISTINCT (state_id, next_state_id)) FROM edges)
    """
    states, transitions = run_trusted_query(store, sql).table.to_pylist()[0].values()
    return f"{states:,} states, {transitions:,} transitions"


if __name__ == "__main__":
    main()
