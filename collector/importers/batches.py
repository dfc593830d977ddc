"""Batches: some trajectories of a log as Arrow tables, ready for a shard."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import pyarrow as pa

from graphcredit.collector.importers.images.kept import KeptImage
from graphcredit.collector.importers.reading import Imported
from graphcredit.collector.importers.trajectory import TrajectoryFacts
from graphcredit.collector.recording.validation import DEFAULTS
from graphcredit.store.schema import STEP_SCHEMA

Partition = tuple[str, int]
"""A run and an iteration."""

BATCH_CHARACTERS = 4 << 20
"""Characters of steps, and bytes of their images, at which a batch is full. The texts of a larger
one leave the cache."""

PATH_CHARACTERS = 80
"""About the characters of the path of an image."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A trajectory of a batch."""

    facts: TrajectoryFacts
    file: int
    """Index of its file in the log."""
    where: str
    """File and place, for messages."""
    images: tuple[KeptImage, ...]
    """The images that its steps name."""

    @property
    def partition(self) -> Partition:
        """Its run and iteration."""
        return self.facts.run_id, self.facts.iteration


@dataclass(frozen=True, kw_only=True, slots=True)
class TrajectoryBatch:
    """Trajectories in the order of the log."""

    entries: list[Entry]
    tables: dict[Partition, pa.Table]
    """The steps of the trajectories of each run and iteration, in the same order; without columns
    that are null or have their default everywhere."""
    num_bytes_read: float
    """Bytes of the log up to here."""


def batches_of(trajectories: Iterable[Imported]) -> Iterator[TrajectoryBatch]:
    """Yield trajectories in batches of about `BATCH_CHARACTERS`."""
    draft = _Draft()
    for imported in trajectories:
        draft.add(imported)
        if draft.num_characters >= BATCH_CHARACTERS:
            yield draft.finished()
            draft = _Draft()
    yield draft.finished()


def one_batch(trajectories: Iterable[Imported]) -> TrajectoryBatch:
    """Return some trajectories as one batch, however long it is."""
    draft = _Draft()
    for imported in trajectories:
        draft.add(imported)
    return draft.finished()


class _Draft:
    """A batch that is being filled."""

    def __init__(self) -> None:
        self.num_characters = 0
        self._num_bytes_read = 0.0
        self._entries: list[Entry] = []
        self._columns: dict[Partition, dict[str, list[Any]]] = {}
        self._num_steps: Counter[Partition] = Counter()

    def add(self, imported: Imported) -> None:
        """Add a trajectory."""
        made = imported.trajectory
        facts = made.facts
        entry = Entry(facts=facts, file=imported.file, where=imported.where, images=made.images)
        self._entries.append(entry)
        self._num_bytes_read = imported.num_bytes_read
        columns = self._columns.setdefault(entry.partition, {})
        before, length = self._num_steps[entry.partition], facts.num_steps
        given = {
            **made.columns,
            "task_id": [facts.task_id] * length,
            "trajectory_id": [facts.trajectory_id] * length,
            "step_index": range(length),
        }
        for name, values in given.items():
            if name not in columns:
                columns[name] = [DEFAULTS.get(name)] * before
            columns[name].extend(values)
        for name in columns.keys() - given.keys():
            columns[name].extend(repeat(DEFAULTS.get(name), length))
        self._num_steps[entry.partition] += length
        self.num_characters += sum(map(len, chain(made.columns["state"], made.columns["extra"])))
        contents = (image.content for image in made.images)
        self.num_characters += sum(len(each) for each in contents if isinstance(each, bytes))
        named = made.columns.get("images", ())
        self.num_characters += PATH_CHARACTERS * sum(len(images or ()) for images in named)

    def finished(self) -> TrajectoryBatch:
        """Return the batch."""
        tables = {key: _table(columns) for key, columns in self._columns.items()}
        return TrajectoryBatch(
            entries=self._entries, tables=tables, num_bytes_read=self._num_bytes_read
        )


def _table(columns: dict[str, list[Any]]) -> pa.Table:
    schema = pa.schema([field for field in STEP_SCHEMA if field.name in columns])
    arrays = [pa.array(columns[field.name], field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)
