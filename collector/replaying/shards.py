"""Read and write the replay shards of an iteration."""

import secrets
from pathlib import Path
from time import monotonic
from typing import Any

import pyarrow as pa

from graphcredit.collector.replaying.decisions import Key
from graphcredit.store.files.tables import write_table
from graphcredit.store.parquet.shards import conform, open_parquet
from graphcredit.store.schema import REPLAY_COLUMNS, arrow_schema

FLUSH_SECONDS = 30.0
"""Seconds after which rows are written: a replay that is killed loses no more."""

_SCHEMA = arrow_schema(REPLAY_COLUMNS)


def replayed(directory: Path, settings: str) -> set[Key]:
    """Return the decisions that were replayed with some settings."""
    found: set[Key] = set()
    for path in sorted(directory.glob("*.parquet")):
        with open_parquet(path) as file:
            table = conform(file.read(), REPLAY_COLUMNS, where=str(path))
        keys = table.select(["trajectory_id", "step_index", "settings"]).to_pylist()
        found |= {
            (row["trajectory_id"], row["step_index"]) for row in keys if row["settings"] == settings
        }
    return found


class Writer:
    """Writes rows into shards, each of which is written once."""

    def __init__(self, directory: Path, shared: dict[str, Any]) -> None:
        """Write into a directory."""
        self._directory = directory
        self._shared = shared
        self._name = secrets.token_hex(6)
        self._number = 0
        self._rows: list[dict[str, Any]] = []
        self._written = monotonic()

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Add rows; write what there is if the last shard is old."""
        self._rows += rows
        if monotonic() - self._written >= FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write a shard with the rows that are in none yet."""
        if self._rows:
            full = [
                {name: (self._shared | row).get(name) for name in _SCHEMA.names}
                for row in self._rows
            ]
            path = self._directory / f"{self._name}-{self._number:06d}.parquet"
            write_table(pa.Table.from_pylist(full, schema=_SCHEMA), path)
            self._number += 1
            self._rows = []
        self._written = monotonic()
