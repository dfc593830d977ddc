"""Times the viewer's pages on a large store, and a large graph in a browser.

    python -m benchmarks.viewer [--steps 1000000] [--iterations 1] [--without-credit]
    python -m benchmarks.viewer --browser [--states 2000]
    python -m benchmarks.viewer --bundle

Each page has a fresh process that has imported its modules but not read the store. The files are in
the operating system's cache. A page is opened (cold), run again (warm), and clicked (another step
or another estimator). The seconds of its queries are listed below it. The rest is Python and
Streamlit's AppTest, which replaces the browser. The column `cpu` has the CPU seconds of all
threads, which are more reliable on a busy machine.

`--browser` opens graphs of a task with `--states` states, and other pages, in Debian's Chromium,
each in a fresh browser without a cache, and times them from the address to the finished page.
`blocked` is the longest time for which the page did nothing else; `MB` are the bytes that the
browser loaded. It needs the package playwright.

`--bundle` writes 1,000 trajectories of 50 steps as a static site.
"""

import argparse
import importlib
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.request import urlopen

from benchmarks.machine import describe
from benchmarks.maze import size_of_graph, write_maze
from benchmarks.synthetic import write_log
from graphcredit.store import Store
from graphcredit.viewer.bundle.choice import BundleChoice
from graphcredit.viewer.bundle.write import write_bundle

ESTIMATORS = ("grpo", "gigpo", "rewardflow", "graphgpo")
PLACE = {"run": "r0", "iteration": "0"}
STEP = {"task": "task-7", "trajectory": "task-7-1"}
PAGES: dict[str, tuple[dict[str, str], dict[str, str] | None]] = {
    "runs": ({}, None),
    "over_time": ({}, None),
    "tasks": (PLACE, {"estimator": "gigpo"}),
    "graph": (PLACE | {"task": "task-7"}, {"at": "n3"}),
    "trajectory": (PLACE | STEP, {"step": "1"}),
    "compare": (PLACE, {"flips": "true"}),
    "sql": ({"q": "SELECT count(*) FROM steps"}, {"q": "SELECT count(*) FROM credit"}),
}
"""Page to the query of its address and the change by a click; None if clicks leave the page."""

BUNDLED_STEPS = 50_000
"""Steps of 1,000 trajectories."""

Result = TypeVar("Result")

CHROMIUM = "/usr/bin/chromium"
FINISHED = "[data-testid=stApp][data-test-script-state=notRunning]"
DRAWN = ".graph[data-ready]"
TOLD = ".chat article.step"
VISITS = (
    ("sql", FINISHED),
    ("tasks", FINISHED),
    ("trajectory", TOLD),
    ("trajectory", TOLD),
    ("graph?view=matters", DRAWN),
    ("graph?view=matters", DRAWN),
    ("graph?view=matters&at=n0", DRAWN),
    ("graph?view=path", DRAWN),
    ("graph?view=everything", DRAWN),
    ("graph?view=everything", DRAWN),
)
"""Pages to open in a browser, and what is there when they are done. SQL loads nothing of its own;
the first visit to a page also loads its modules on the server."""
WATCH = """
    globalThis.blocked = 0;
    new PerformanceObserver((list) => {
      for (const task of list.getEntries()) blocked = Math.max(blocked, task.duration);
    }).observe({ type: "longtask", buffered: true });
"""


def main() -> None:
    """Print the table that the arguments select."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000, help="steps of each iteration")
    parser.add_argument("--iterations", type=int, default=1)
    parser.add_argument("--without-credit", action="store_true")
    parser.add_argument("--browser", action="store_true")
    parser.add_argument("--bundle", action="store_true")
    parser.add_argument("--states", type=int, default=2000, help="states of the browser's graph")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "store"
        if options.browser:
            store = write_maze(root, options.states)
            assign_credit(root)
            print(f"{describe()}, {size_of_graph(store)}")
            in_a_browser(root)
            return
        if options.bundle:
            write_log(root, BUNDLED_STEPS)
            assign_credit(root)
            print(f"{describe()}\n{bundle(root)}")
            return
        write_log(root, options.steps, num_iterations=options.iterations)
        if not options.without_credit:
            assign_credit(root)
        print(f"{describe()}, {options.iterations} x {options.steps:,} steps")
        pages(root)


def pages(root: Path) -> None:
    """Print a row for each page and each of its queries."""
    # Streamlit reads it at import. Without it, Streamlit warns that there is no server.
    os.environ["STREAMLIT_LOGGER_LEVEL"] = "error"
    kinds = "".join(f"{kind:>9}{'cpu':>6}" for kind in ("cold s", "warm s", "click s"))
    print(f"{'page':<12}{'query':<18}{kinds}{'MiB':>7}")
    for page in PAGES:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
            for row in fresh.submit(measure, page, root).result():
                print(row, flush=True)


def measure(page: str, root: Path) -> list[str]:
    """Return the table rows of a page. Call it in a fresh process."""
    from streamlit.testing.v1 import AppTest

    from graphcredit.viewer.config import STORE_VARIABLE, script
    from graphcredit.viewer.sitemap import PAGES as ALL_PAGES
    from graphcredit.viewer.widgets import cache
    from tests.viewer.browser import go

    for name in ALL_PAGES:
        importlib.import_module(f"graphcredit.viewer.pages.{name}")
    os.environ[STORE_VARIABLE] = str(root)
    queries: dict[str, list[Taken]] = {}

    def timed(query: Callable[..., Any], name: str, *rest: Any) -> Any:
        result, taken = time_of(lambda: answer(query, name, *rest))
        queries.setdefault(name.rpartition(".")[2], []).append(taken)
        return result

    answer, cache._answer = cache._answer, timed  # pyright: ignore[reportPrivateUsage]
    app = AppTest.from_file(script(), default_timeout=600)
    opened, clicked = PAGES[page]
    times = [time_of(lambda: go(app, page, **opened))[1]]
    found = {name: Taken(*map(sum, zip(*taken, strict=True))) for name, taken in queries.items()}
    times.append(time_of(app.run)[1])
    if clicked is not None:
        times.append(time_of(lambda: go(app, page, **opened | clicked))[1])
    if app.exception:
        raise SystemExit(app.exception[0].value)
    processes = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    peak = max(resource.getrusage(which).ru_maxrss for which in processes) / 1024
    return [
        f"{page:<30}{''.join(map(str, times)):<45}{peak:>7.0f}",
        *(f"{'':<12}{name:<18}{taken}" for name, taken in found.items()),
    ]


class Taken(NamedTuple):
    """Seconds of a call, by the clock and of the CPU."""

    seconds: float
    cpu: float

    def __str__(self) -> str:
        """Format two columns of the table."""
        return f"{self.seconds:>9.2f}{self.cpu:>6.2f}"


def time_of(run: Callable[[], Result]) -> tuple[Result, Taken]:
    """Return the result of a call, and its seconds."""
    start, cpu = time.perf_counter(), _cpu_seconds()
    result = run()
    return result, Taken(time.perf_counter() - start, _cpu_seconds() - cpu)


def _cpu_seconds() -> float:
    """Return the CPU seconds of this process and its finished children; SQL runs in a child."""
    return sum(os.times()[:4])


def in_a_browser(root: Path) -> None:
    """Print the seconds from an address to its finished page, and what the browser loaded."""
    from playwright.sync_api import sync_playwright

    print(f"{'page':<24}{'done s':>9}{'blocked s':>11}{'MB':>7}")
    with served(root) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for page, is_done in VISITS:
            visitor = browser.new_context(viewport={"width": 1500, "height": 1000})
            tab = visitor.new_page()
            loaded = count_bytes(visitor.new_cdp_session(tab))
            tab.add_init_script(WATCH)
            start = time.perf_counter()
            tab.goto(f"{address}/{page}")
            tab.wait_for_selector(is_done, state="attached", timeout=120_000)
            tab.evaluate("new Promise((go) => requestAnimationFrame(() => setTimeout(go)))")
            seconds, blocked = time.perf_counter() - start, tab.evaluate("blocked") / 1000
            tab.wait_for_load_state("networkidle")
            print(f"{page:<24}{seconds:>9.2f}{blocked:>11.2f}{sum(loaded) / 1e6:>7.2f}", flush=True)
            visitor.close()
        browser.close()


def count_bytes(session: Any) -> list[int]:
    """Return a list to which the sizes of a tab's responses are appended, as they were sent."""
    sizes: list[int] = []
    session.send("Network.enable")
    session.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    return sizes


def bundle(root: Path) -> str:
    """Write a store as a bundle; return its size and how long it took, as text."""
    target = root.with_name("bundle")
    report, taken = time_of(lambda: write_bundle(Store(root), target, BundleChoice()))
    return (
        f"{report.num_trajectories:,} trajectories, {report.num_bytes / 1e6:.1f} MB{taken} s, cpu"
    )


@contextmanager
def served(root: Path) -> Generator[str]:
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


def assign_credit(root: Path) -> None:
    """Assign credit in a separate process, so that its memory does not count as the viewer's."""
    command = [sys.executable, "-m", "graphcredit.cli.main", "credit", str(root), "--no-audit"]
    command += [word for name in ESTIMATORS for word in ("--estimator", name)]
    subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    main()
