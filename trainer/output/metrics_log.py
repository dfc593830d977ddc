"""Write the metrics of a training: a line per optimizer step, TensorBoard, the store."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from graphcredit.store.errors import MissingDependencyError
from graphcredit.store.files.atomic import atomic_path
from graphcredit.store.files.tables import write_table
from graphcredit.store.layout import Store, is_name
from graphcredit.store.parquet.shards import open_parquet
from graphcredit.store.schema import TRAINING_COLUMNS, arrow_schema, metric_column
from graphcredit.trainer.output.directory import Output

_OUT_KEY = b"graphcredit.out"
"""Metadata key of the metrics in the store: the output directory of their training."""

Metrics = Mapping[str, float | int | None]


class MetricsLog:
    """`metrics.jsonl`: one line for each update, also after a kill and a resume."""

    def __init__(
        self, path: Path, num_done: int, *, otherwise: Sequence[dict[str, Any]] = ()
    ) -> None:
        """Open the file after the first `num_done` updates; lines of later ones are removed.

        Args:
            path: The file.
            num_done: Updates in the checkpoint that training resumes from.
            otherwise: The rows from the store, used where the file lacks them.
        """
        rows = {row["update"]: row for row in (*otherwise, *_sound_lines(path))}
        kept = [rows[update] for update in sorted(rows) if update < num_done]
        with atomic_path(path) as temporary:
            temporary.write_text("".join(map(_line, kept)), encoding="utf-8")
        self.rows = kept
        """All updates so far, in order."""
        self._file = path.open("a", encoding="utf-8")

    def log(self, update: int, metrics: Metrics) -> None:
        """Append a line and flush it to the operating system."""
        row = {"update": update, **metrics}
        self.rows.append(row)
        self._file.write(_line(row))
        self._file.flush()

    def sync(self) -> None:
        """Wait until all lines are on disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _TensorBoard:
    def __init__(self, directory: Path, num_done: int) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingDependencyError(
                "TensorBoard is not installed: pip install 'graphcredit[train]'"
            ) from error
        self._writer = SummaryWriter(str(directory), purge_step=num_done)

    def log(self, update: int, metrics: Metrics) -> None:
        for name, value in metrics.items():
            if value is not None:
                self._writer.add_scalar(f"train/{name}", value, update)

    def close(self) -> None:
        self._writer.close()


class TrainingLog:
    """All destinations of metrics; only the first process writes."""

    def __init__(
        self,
        output: Output,
        path: Path,
        num_done: int,
        *,
        is_writing: bool,
    ) -> None:
        """Open the destinations after the first `num_done` updates.

        Args:
            output: Where `metrics.jsonl` and `tensorboard/` are.
            path: `training/…` in the store.
            num_done: Updates in the checkpoint that training resumes from.
            is_writing: Whether this process writes.

        Raises:
            MissingDependencyError: TensorBoard is not installed.
        """
        self.rows: list[dict[str, Any]] = []
        """All updates so far, in order; on other processes, those since this start."""
        self._out, self._path = output.root, path
        self._lines = self._board = None
        if is_writing:
            self._board = _TensorBoard(output.root / "tensorboard", num_done)
            self._lines = MetricsLog(output.metrics_path, num_done, otherwise=_read(path))
            self.rows = list(self._lines.rows)

    def write(self, update: int, metrics: Metrics) -> None:
        """Log the metrics of an update."""
        self.rows.append({"update": update, **metrics})
        for log in (self._lines, self._board):
            if log is not None:
                log.log(update, metrics)

    def keep(self) -> None:
        """Write all metrics so far to disk, in `metrics.jsonl` and in the store."""
        if self._lines is not None:
            self._lines.sync()
            write_training(self._path, self._out, self.rows)

    def close(self) -> None:
        """Close all destinations."""
        for log in (self._lines, self._board):
            if log is not None:
                log.close()


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
    table = pa.Table.from_pylist(named, schema=schema)
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
                row = json.loads(line)
                if isinstance(row, dict) and isinstance(row.get("update"), int):
                    rows.append(row)
    return rows


def _line(row: Metrics) -> str:
    return json.dumps(row) + "\n"
