"""Commands that write to one store at once, killed at random moments: nothing is lost or doubled.

`python -c "from tests.mixed_kills import kills; kills(200)"` kills as many; the suites fewer.
"""

import json
import os
import random
import sys
import tempfile
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow.parquet as pq

from graphcredit.cli.main import main
from graphcredit.store.checks.run import check_store
from graphcredit.store.layout import create_store, open_store
from graphcredit.store.sql.catalog import connect
from graphcredit.viewer.config import STORE_VARIABLE, script
from tests.forks import FORKS

COMMANDS = {
    "import 0": "import log0.jsonl store --run a",
    "import 1": "import log1.jsonl store --run a",
    "import 2": "import log2.jsonl store --run b",
    "credit": "credit store --new -e reach -e grpo",
    "states": "states store --set effects",
    "check": "check store",
    "audit": "audit store",
    "evidence": "evidence store",
    "why": "why log0.jsonl",
    "export": "export store steps.parquet --run a",
    "collect": "collect store --env sokoban --policy random --tasks 2 --run c --workers 0",
    "bundle": "view store --bundle bundle",
}
"""What is run; some of it has nothing to work on before an import has ended, and says so."""
WRITERS = (*COMMANDS, "view")
PAGES = ("runs", "tasks", "graph", "trajectory", "search")
_TOGETHER = 3
_ORDER = ("import 0", "import 1", "import 2", "collect", "states", "credit")
"""What must be in the store in the end."""


def work(name: str, folder: Path) -> None:
    """Do one thing in a folder, once; its messages go to a file."""
    os.chdir(folder)
    os.environ["TMPDIR"] = str(folder / "tmp")
    tempfile.tempdir = None
    os.dup2(os.open("messages", os.O_WRONLY | os.O_CREAT | os.O_APPEND), sys.stderr.fileno())
    with open(os.devnull, "w") as out, redirect_stdout(out):
        if name == "view":
            _view()
        else:
            with patch.object(sys, "argv", ["graphcredit", *COMMANDS[name].split()]):
                main()


def _view() -> None:
    """Look at each page of the store."""
    from streamlit.testing.v1 import AppTest  # a second that other processes need not take

    from tests.viewer.browser import go

    os.environ[STORE_VARIABLE] = str(Path("store").absolute())
    for name in PAGES:
        app = go(AppTest.from_file(script(), default_timeout=300), name)
        for error in app.exception:
            sys.stderr.write(f"Traceback of page {name}: {error.message}\n")


def prepare(folder: Path) -> None:
    """Write three logs, of which two are one run's, and an empty store."""
    (folder / "tmp").mkdir(parents=True)
    rows = [json.loads(line) for line in Path("examples/orders.jsonl").read_text().splitlines()]
    for part in range(3):
        lines = (json.dumps(row) for row in rows[part * 24 : (part + 1) * 24])
        (folder / f"log{part}.jsonl").write_text("\n".join(lines))
    create_store(folder / "store")


def kill_at_random(folder: Path, num_kills: int, seed: int = 0) -> dict[str, int]:
    """Start several things at a time, and kill each after a random time.

    Returns:
        How often what was killed, and how often it was done before.
    """
    chance, counts, done = random.Random(seed), dict[str, int](), 0
    took = dict.fromkeys(WRITERS, 1.0)
    while done < num_kills:
        names = chance.sample(WRITERS, _TOGETHER)
        running = [(name, FORKS.Process(target=work, args=(name, folder))) for name in names]
        began = time.monotonic()
        ends = {name: began + chance.uniform(0.05, 1.0) * took[name] for name in names}
        for _, process in running:
            process.start()
        for name, process in sorted(running, key=lambda each: ends[each[0]]):
            process.join(max(0.0, ends[name] - time.monotonic()))
            was_killed = process.exitcode is None
            process.kill()
            process.join()
            # Time limits follow what a thing takes, so that kills fall into all of it.
            took[name] = took[name] * 1.3 if was_killed else took[name] * 0.9
            what = f"{name}, {'killed' if was_killed else 'done'}"
            counts[what] = counts.get(what, 0) + 1
            done += was_killed
        assert_whole(folder)
    return counts


def assert_whole(folder: Path) -> None:
    """What a kill leaves reads: rows once, files of others whole or not there."""
    store = open_store(folder / "store")
    report = check_store(store)
    assert not report.errors, report.errors
    with connect(store) as connection:
        twice = connection.execute(
            "SELECT trajectory_id, step_index FROM steps GROUP BY ALL HAVING count(*) > 1"
        ).fetchall()
    assert not twice, twice
    if (folder / "steps.parquet").exists():
        assert pq.read_table(folder / "steps.parquet").num_rows > 0
    if (folder / "bundle").exists():
        assert (folder / "bundle" / "index.html").read_text().rstrip().endswith("</html>")
    messages = folder / "messages"
    assert "Traceback" not in (messages.read_text() if messages.exists() else "")


def finish(folder: Path) -> list[Any]:
    """Do all that must be there without a kill, and return what the store then has."""
    for name in _ORDER:
        process = FORKS.Process(target=work, args=(name, folder))
        process.start()
        process.join()
    assert_whole(folder)
    with connect(open_store(folder / "store")) as connection:
        return connection.execute(
            "SELECT * EXCLUDE (logged_at, worker_id) FROM enriched ORDER BY ALL"
        ).fetchall()


def kills(number: int, seed: int = 0) -> dict[str, int]:
    """Kill at random, then compare what is there in the end with a store where none was killed.

    Returns:
        How often what was killed, and how often it was done before.
    """
    with tempfile.TemporaryDirectory() as name:
        killed, whole = Path(name, "killed"), Path(name, "whole")
        prepare(killed)
        prepare(whole)
        counts = kill_at_random(killed, number, seed)
        assert finish(killed) == finish(whole)
    return counts
