"""Import in a test, and read what is in the store."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from graphcredit.collector.importers.helpers import read
from graphcredit.collector.importers.logs import jsonl
from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.report import ImportReport
from graphcredit.collector.importers.run import import_log
from graphcredit.store import open_store, read_steps


def imported(source: Path, store: Path, *, engine: str = "local", **options: Any) -> ImportReport:
    return import_log(source, store, ImportOptions(**options), engine=engine)


@contextmanager
def small_pieces(num_bytes: int) -> Generator[None]:
    """Read logs in pieces of so many bytes, or of a file or a line that has more."""
    with (
        patch.object(read, "SMALL_BYTES", num_bytes),
        patch.object(read, "PIECE_BYTES", num_bytes),
        patch.object(jsonl, "BLOCK_BYTES", num_bytes),
        patch.object(jsonl, "_READ_BYTES", num_bytes // 3 + 64),
    ):
        yield


def steps_of(store: Path) -> list[dict[str, Any]]:
    """Return all steps of a store, in the order of trajectories and steps."""
    rows = [row for table in read_steps(open_store(store)) for row in table.to_pylist()]
    return sorted(rows, key=lambda row: (row["trajectory_id"], row["step_index"]))


def brief(store: Path, *columns: str) -> list[tuple[Any, ...]]:
    """Return some columns of all steps."""
    return [tuple(row[name] for name in columns) for row in steps_of(store)]
