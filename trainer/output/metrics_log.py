"""Write the metrics of a training: a line per optimizer step, TensorBoard, the store."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from graphcredit.store.errors import MissingDependencyError
from graphcredit.store.extras import how_to_install
from graphcredit.store.files.atomic import atomic_path
from graphcredit.store.files.parse import parse_json
from graphcredit.store.files.tables import write_table
from graphcredit.store.layout import Store, is_name
from graphcredit.store.parquet.numbers import table_of
from graphcredit.store.parquet.shards import open_parquet
from graphcredit.store.schema import TRAINING_COLUMNS, arrow_schema, metric_column
from graphcredit.trainer.output.directory import Output

_OUT_KEY = b"graphcredit.out"
"""Metadata key of the metrics in the store: the output directory of their training."""

Metrics = Mapping[str, float | int | None]


class TrainingLog:
    """All destinations of metrics; only the first process writes.

    `metrics.jsonl` has one line for each update, also after a kill and a resume.
    """

    def __init__(self, output: Output, path: Path, num_done: int, *, is_writing: bool) -> None:
        """Open the destinations after the first `num_done` updates; what is of later ones goes.

        Args:
            output: Where `metrics.jsonl` and `tensorboard/` are. Lines that are damaged come from
                the store.
            path: `training/…` in the store.
            num_done: Updates in the checkpoint that training resumes from.
            is_writing: Whether this process writes.

        Raises:
            MissingDependencyError: TensorBoard is not installed.
        """
        self.rows: list[dict[str, Any]] = []
        """All updates so far, in order; on other processes, those since this start."""
        self._out, self._path = output.root, path
        self._file = self._board = None
        if is_writing:
            self._board = _board(output.root / "tensorboard", num_done)
            lines = output.metrics_path
            rows = {row["update"]: row for row in (*_read(path), *_sound_lines(lines))}
            self.rows = [rows[update] for update in sorted(rows) if update < num_done]
            with atomic_path(lines) as temporary:
                temporary.write_text("".join(map(_line, self.rows)), encoding="utf-8")
            self._file = lines.open("a", encoding="utf-8")

    def write(self, update: int, metrics: Metrics) -> None:
        """Log the metrics of an update, and hand the line to the operating system."""
        row = {"update": update, **metrics}
        self.rows.append(row)
        if self._file is not None:
            self._file.write(_line(row))
            self._file.flush()
        if self._board is not None:
            for name, value in metrics.items():
                if value is not None:
                    self._board.add_scalar(f"train/{name}", value, update)

    def keep(self) -> None:
        """Write all metrics so far to disk, in `metrics.jsonl` and in the store."""
        if self._file is not None:
            os.fsync(self._file.fileno())
            write_training(self._path, self._out, self.rows)

    def close(self) -> None:
        """Close all destinations."""
        for destination in (self._file, self._board):
            if destination is not None:
                destination.close()


def _board(directory: Path, num_done: int) -> Any:
    """Return TensorBoard's writer, which forgets what was written after `num_done` updates."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingDependencyError(
            f"TensorBoard is not installed: {how_to_install('train')}"
        ) from error
    return SummaryWriter(str(directory), purge_step=num_done)


def training_path(store: Store, run_id: str, iteration: int, out: Path) -> Path:
    """Return the path of a training's metrics in the store, named after its output directory.

    If another training has that name, a hash of the full output path is appended.
    """
    name = out.name if is_name(out.name) else "training"
    path = store.training_path(run_id, iteration, name)
    if not path.exists() or _owner(path) == str(out):
        return path
    mark = hashlib.sha256(str(out).encode()).hexdigest()[:8]
    return store.training_path(run_id, iteration, f"{name[:119]}-{mark}")


def write_training(path: Path, out: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the metrics of all updates so far to the store.

    Args:
        path: From `training_path`.
        out: Output directory of the training.
        rows: One for each update. A missing metric is null; a metric that the schema lacks, such
            as a statistic of an objective, gets its own column.
    """
    columns = {column.name: column for column in TRAINING_COLUMNS}
    for name in (name for row in rows for name in row if name not in columns):
        columns[name] = metric_column(name, "written by an objective")
    schema = arrow_schema(tuple(columns.values()))
    named = [{"training": path.stem, **row} for row in rows]
    table = table_of(named, schema)
    metadata = {**(schema.metadata or {}), _OUT_KEY: str(out).encode()}
    write_table(table.replace_schema_metadata(metadata), path)


def _owner(path: Path) -> str:
    with open_parquet(path) as file:
        return (file.schema_arrow.metadata or {}).get(_OUT_KEY, b"").decode()


def _read(path: Path) -> list[dict[str, Any]]:
    """Return the rows in the store, without nulls."""
    if not path.exists():
        return []
    with open_parquet(path) as file:
        rows = file.read().to_pylist()
    return [{k: v for k, v in row.items() if v is not None and k != "training"} for row in rows]


def _sound_lines(path: Path) -> list[dict[str, Any]]:
    """Return the rows of `metrics.jsonl`, without lines that are cut short or damaged."""
    rows: list[dict[str, Any]] = []
    if path.exists():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(ValueError):
                row = parse_json(line)
                if isinstance(row, dict) and isinstance(row.get("update"), int):
                    rows.append(row)
    return rows


def _line(row: Metrics) -> str:
    return json.dumps(row) + "\n"
