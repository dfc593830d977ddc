"""Times the viewer's pages on a large store.

    python -m benchmarks.viewer [--steps 1000000] [--iterations 1] [--without-credit]
    python -m benchmarks.viewer --bundle

Each page has a fresh process that has imported its modules but not read the store. The files are in
the operating system's cache. A page is opened (cold), run again (warm), and clicked (another step
or another estimator). The seconds of its queries are listed below it. The rest is Python and
Streamlit's AppTest, which replaces the browser. The column `cpu` has the CPU seconds of all
threads, which are more reliable on a busy machine.

`--bundle` writes 1,000 trajectories of 50 steps as a static site.
"""

import argparse
import importlib
import os
import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from benchmarks.machine import describe, run_graphcredit
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


def main() -> None:
    """Print the table that the arguments select."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000, help="steps of each iteration")
    parser.add_argument("--iterations", type=int, default=1)
    parser.add_argument("--without-credit", action="store_true")
    parser.add_argument("--bundle", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "store"
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


def bundle(root: Path) -> str:
    """Write a store as a bundle; return its size and how long it took, as text."""
    target = root.with_name("bundle")
    report, taken = time_of(lambda: write_bundle(Store(root), target, BundleChoice()))
    return (
        f"{report.num_trajectories:,} trajectories, {report.num_bytes / 1e6:.1f} MB{taken} s, cpu"
    )


def assign_credit(root: Path) -> None:
    """Assign credit in a separate process, so that its memory does not count as the viewer's."""
    names = [word for name in ESTIMATORS for word in ("--estimator", name)]
    run_graphcredit("credit", root, "--no-audit", *names)


if __name__ == "__main__":
    main()
