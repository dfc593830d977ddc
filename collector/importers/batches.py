"""Batches: some trajectories of a log as Arrow tables, ready for a shard."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import pyarrow as pa

from graphcredit.collector.importers.trajectory import ImportedTrajectory, Partition
from graphcredit.collector.recording.validation import DEFAULTS
from graphcredit.store.parquet.numbers import array_of
from graphcredit.store.schema import STEP_SCHEMA

BATCH_CHARACTERS = 4 << 20
"""Characters of steps, and bytes of their images, at which a batch is full. The texts of a larger
one leave the cache."""

PATH_CHARACTERS = 80
"""About the characters of the path of an image."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrajectoryBatch:
    """Trajectories in the order of the log."""

    entries: list[ImportedTrajectory]
    """Their columns are in the tables."""
    tables: dict[Partition, pa.Table]
    """The steps of the trajectories of each run and iteration, in the same order; without columns
    that are null or have their default everywhere."""
    num_bytes_read: float
    """Bytes of the log up to here."""


def batches_of(trajectories: Iterable[ImportedTrajectory]) -> Iterator[TrajectoryBatch]:
    """Yield trajectories in batches of about `BATCH_CHARACTERS`."""
    draft = _Draft()
    for made in trajectories:
        draft.add(made)
        if draft.num_characters >= BATCH_CHARACTERS:
            yield draft.finished()
            draft = _Draft()
    yield draft.finished()


def one_batch(trajectories: Iterable[ImportedTrajectory]) -> TrajectoryBatch:
    """Return some trajectories as one batch, however long it is."""
    draft = _Draft()
    for made in trajectories:
        draft.add(made)
    return draft.finished()


class _Draft:
    """A batch that is being filled."""

    def __init__(self) -> None:
        self.num_characters = 0
        self._entries: list[ImportedTrajectory] = []
        self._columns: dict[Partition, dict[str, list[Any]]] = {}
        self._num_steps: Counter[Partition] = Counter()

    def add(self, made: ImportedTrajectory) -> None:
        """Add a trajectory."""
        logged, made.columns = made.columns, {}
        self._entries.append(made)
        key, length = made.partition, made.num_steps
        columns, before = self._columns.setdefault(key, {}), self._num_steps[key]
        given: dict[str, Sequence[Any]] = {
            **logged,
            "task_id": [made.task_id] * length,
            "trajectory_id": [made.trajectory_id] * length,
            "step_index": range(length),
        }
        for name, values in given.items():
            if name not in columns:
                columns[name] = [DEFAULTS.get(name)] * before
            columns[name].extend(values)
        for name in columns.keys() - given.keys():
            columns[name].extend(repeat(DEFAULTS.get(name), length))
        self._num_steps[key] += length
        texts = filter(None, chain(given["state"], given["extra"]))
        self.num_characters += sum(map(len, texts))
        contents = (image.content for image in made.images)
        self.num_characters += sum(len(each) for each in contents if isinstance(each, bytes))
        paths = given.get("images", ())
        self.num_characters += PATH_CHARACTERS * sum(len(images or ()) for images in paths)

    def finished(self) -> TrajectoryBatch:
        """Return the batch."""
        tables = {key: _table(columns) for key, columns in self._columns.items()}
        num_bytes_read = self._entries[-1].origin.num_bytes_read if self._entries else 0.0
        return TrajectoryBatch(entries=self._entries, tables=tables, num_bytes_read=num_bytes_read)


def _table(columns: dict[str, list[Any]]) -> pa.Table:
    schema = pa.schema([field for field in STEP_SCHEMA if field.name in columns])
    arrays = [array_of(columns[field.name], field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)
