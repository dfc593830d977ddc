"""Where metrics go: a line per optimizer step, TensorBoard, a tracker, and the store."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from graphcredit.store.atomic import atomic_path, write_table
from graphcredit.store.errors import MissingDependencyError
from graphcredit.store.schema import TRAINING_COLUMNS, arrow_schema
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.output import Output

Metrics = Mapping[str, float | int | None]


class Watcher(Protocol):
    """Somebody who is told of every update."""

    def log(self, update: int, metrics: Metrics) -> None:
        """Take the metrics of an update."""
        ...

    def close(self) -> None:
        """Let go."""
        ...


class Journal:
    """`metrics.jsonl`: every update exactly once, whatever was killed in between."""

    def __init__(self, path: Path, num_done: int) -> None:
        """Open the file for the updates after the first `num_done`, and forget later ones.

        Args:
            path: The file.
            num_done: Updates that the weights have behind them.
        """
        kept = [line for line in _whole_lines(path) if line["update"] < num_done]
        with atomic_path(path) as temporary:
            temporary.write_text("".join(map(_line, kept)), encoding="utf-8")
        self.rows = kept
        """All updates so far, in order."""
        self._file = path.open("a", encoding="utf-8")

    def log(self, update: int, metrics: Metrics) -> None:
        """Append a line; it is on its way to disk when this returns."""
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
                "TensorBoard is not installed: pip install 'graphcredit[train]', or go without by "
                "--no-tensorboard"
            ) from error
        self._writer = SummaryWriter(str(directory), purge_step=num_done)

    def log(self, update: int, metrics: Metrics) -> None:
        for name, value in metrics.items():
            if value is not None:
                self._writer.add_scalar(f"train/{name}", value, update)

    def close(self) -> None:
        self._writer.close()


class _Tracker:
    """wandb, or trackio, which has its interface."""

    def __init__(self, name: str, config: TrainConfig) -> None:
        try:
            self._module = __import__(name)
        except ImportError as error:
            raise MissingDependencyError(
                f"{name} is not installed: pip install {name}, or leave --tracker out"
            ) from error
        self._module.init(project="graphcredit", name=config.out.name, config=config.as_json())

    def log(self, update: int, metrics: Metrics) -> None:
        known = {name: value for name, value in metrics.items() if value is not None}
        self._module.log({"update": update, **known})

    def close(self) -> None:
        self._module.finish()


class TrainingLog:
    """Everything that is written of the updates, by one process; the others only remember."""

    def __init__(
        self,
        config: TrainConfig,
        output: Output,
        path: Path,
        num_done: int,
        *,
        is_writing: bool,
    ) -> None:
        """Open it for the updates after the first `num_done`.

        Args:
            config: Says which watchers are wanted.
            output: Where the journal is.
            path: `training/…` in the store.
            num_done: Updates that the weights have behind them.
            is_writing: Whether this process writes.

        Raises:
            MissingDependencyError: A watcher is not installed.
        """
        self.rows: list[dict[str, Any]] = []
        """All updates so far, in order; on other processes, those of this start."""
        self._name, self._path = config.out.name, path
        self._watchers: list[Watcher] = []
        self._journal: Journal | None = None
        if is_writing:
            if config.tensorboard:
                self._watchers.append(_TensorBoard(output.root / "tensorboard", num_done))
            if config.tracker:
                self._watchers.append(_Tracker(config.tracker, config))
            self._journal = Journal(output.metrics_path, num_done)
            self.rows = list(self._journal.rows)

    def write(self, update: int, metrics: Metrics) -> None:
        """Take the metrics of an update."""
        self.rows.append({"update": update, **metrics})
        for watcher in (self._journal, *self._watchers):
            if watcher is not None:
                watcher.log(update, metrics)

    def keep(self) -> None:
        """See to it that what was written survives, in the journal and in the store."""
        if self._journal is not None:
            self._journal.sync()
            write_training(self._path, self._name, self.rows)

    def close(self) -> None:
        """Let go of everything."""
        for watcher in (self._journal, *self._watchers):
            if watcher is not None:
                watcher.close()


def write_training(path: Path, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the metrics of all updates so far to the store.

    Args:
        path: `training/…` in the store.
        name: Of the training.
        rows: One for each update; what a row lacks is null.
    """
    schema = arrow_schema(TRAINING_COLUMNS)
    named = [{"training": name, **row} for row in rows]
    write_table(pa.Table.from_pylist(named, schema=schema), path)


def _whole_lines(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a journal; a last line that a kill cut short is not one."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def _line(row: Metrics) -> str:
    return json.dumps(row) + "\n"
