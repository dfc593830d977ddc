"""`graphcredit credit --watch`: stay, and credit what appears."""

import signal
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from graphcredit.cli.output.catalog import rebuild
from graphcredit.cli.output.console import print_json, say, tell
from graphcredit.store.errors import interrupts
from graphcredit.store.plural import counted

if TYPE_CHECKING:
    from graphcredit.credit.iteration.engines.local import BatchEngine
    from graphcredit.credit.iteration.settings import CreditSettings
    from graphcredit.credit.watch import Watched
    from graphcredit.store import Store


def watch(
    root: Path,
    settings: "CreditSettings",
    *,
    run: str | None,
    iteration: int | None,
    every: float,
    engine: "AbstractContextManager[BatchEngine]",
    as_json: bool,
) -> None:
    """Credit what appears, and print a line for each iteration, until a signal ends it."""
    from graphcredit.credit.watch import CreditWatch

    with _until_signal(), engine as opened_engine:
        store = _wait_for_store(root, every)
        watch = CreditWatch(
            store, settings, run_id=run, iteration=iteration, rest=every, engine=opened_engine
        )
        tell(f"watching {root}; Ctrl-C or SIGTERM ends it")
        while True:
            num_credited = 0
            for watched in watch.look():
                if as_json:
                    print_json(_as_json(watched), indent=None)
                else:
                    say(_line(watched))
                num_credited += watched.report is not None
            if num_credited:
                rebuild(store)
            time.sleep(every)


@contextmanager
def _until_signal() -> Generator[None]:
    """End at SIGINT or SIGTERM without an error: at once, as files are replaced whole."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with interrupts():
            yield
    except KeyboardInterrupt:
        tell("the watch has ended; each iteration has its new credit or its old one")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait_for_store(root: Path, every: float) -> "Store":
    from graphcredit.credit.watch import is_awaited
    from graphcredit.store.layout import open_store

    if is_awaited(root):
        tell(f"there is no store at {root} yet: waiting for it")
    while is_awaited(root):
        time.sleep(every)
    return open_store(root)


def _as_json(watched: "Watched") -> dict[str, Any]:
    key = {"run_id": watched.run_id, "iteration": watched.iteration}
    counts = watched.report.as_json() if watched.report is not None else {}
    return {**key, "error": watched.error, "seconds": round(watched.seconds, 3), **counts}


def _line(watched: "Watched") -> str:
    which = f"run {watched.run_id}, iteration {watched.iteration}"
    report = watched.report
    if report is None:
        return f"{which}: no credit, until its files change: {watched.error}"
    incomplete = f", {report.num_incomplete:,} incomplete" if report.num_incomplete else ""
    return (
        f"{which}: credit for {counted(report.num_steps, 'step')} of "
        f"{counted(report.num_trajectories, 'trajectory')} ({report.num_successes:,} successful"
        f"{incomplete}) in {counted(report.num_groups, 'group')}, {watched.seconds:.2f} s"
    )
