"""Import in a test, and read what is in the store."""

from pathlib import Path
from typing import Any

from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.report import ImportReport
from graphcredit.collector.importers.run import import_log
from graphcredit.store import open_store, read_steps


def imported(source: Path, store: Path, **options: Any) -> ImportReport:
    return import_log(source, store, ImportOptions(**options))


def steps_of(store: Path) -> list[dict[str, Any]]:
    """Return all steps of a store, in the order of trajectories and steps."""
    rows = [row for table in read_steps(open_store(store)) for row in table.to_pylist()]
    return sorted(rows, key=lambda row: (row["trajectory_id"], row["step_index"]))


def brief(store: Path, *columns: str) -> list[tuple[Any, ...]]:
    """Return some columns of all steps."""
    return [tuple(row[name] for name in columns) for row in steps_of(store)]
