"""Find trajectories of an iteration that the store already has, to deduplicate a repeated log.

Only ids that the caller chose can occur twice, so nothing is read before the first of them. Then
the ids in all shards and in the spools of other workers are read, and kept as hashes, 12 bytes
each. The steps themselves are read only if an id is found.
"""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from cachetools import LRUCache
from numpy.typing import NDArray

from graphcredit.collector.recording.shards import step_table
from graphcredit.collector.recording.spool_format import read_spool
from graphcredit.store.errors import SchemaError
from graphcredit.store.files.regular import is_plain_file
from graphcredit.store.layout import Store
from graphcredit.store.parquet.shards import conform, open_parquet, step_columns
from graphcredit.store.schema import STEP_COLUMNS

COMPARED = tuple(c for c in STEP_COLUMNS if c.name not in ("worker_id", "logged_at"))
"""The columns that must be equal: all but those that say who logged the step, and when."""

_CACHED_BYTES = 256 << 20
"""Bytes of steps to cache. A log that is written again has its old order, so a row group that was
read for one trajectory is needed for the next one too."""


@dataclass(frozen=True, slots=True)
class _Source:
    """What is read at once: a row group of a shard, or a spool."""

    path: Path
    row_group: int | None
    """Index of the row group; None for a spool, which is read as a whole."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Steps:
    """The steps of a source."""

    table: pa.Table
    ranges: dict[str, range]
    """The rows of each trajectory whose rows are neighbours."""


StepsCache = LRUCache[_Source, _Steps]


def steps_cache() -> StepsCache:
    """Return a cache of steps, which several `KnownTrajectories` may share."""
    # A source that alone exceeds the limit stays until the next one is read.
    return LRUCache(_CACHED_BYTES, getsizeof=lambda steps: min(steps.table.nbytes, _CACHED_BYTES))


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownTrajectory:
    """A trajectory that the store already has."""

    where: str
    """The files with its steps, relative to the store."""
    rows: list[dict[str, Any]]
    """Its steps in order; each maps the `COMPARED` columns to values."""


class KnownTrajectories:
    """The trajectories of a run and iteration. Not thread-safe."""

    def __init__(
        self,
        store: Store,
        *,
        run_id: str,
        iteration: int,
        worker_id: str,
        cache: "StepsCache | None" = None,
    ):
        self._store = store
        self._run_id, self._iteration, self._worker_id = run_id, iteration, worker_id
        self._sources: list[_Source] = []
        self._hashes: NDArray[np.int64] | None = None
        self._source_of_hash = np.empty(0, np.uint32)
        self._cache = steps_cache() if cache is None else cache

    def find(self, trajectory_id: str) -> KnownTrajectory | None:
        """Return a trajectory, if the store has any step of it."""
        while True:
            try:
                return self._find(trajectory_id)
            except FileNotFoundError:  # a spool was turned into a shard meanwhile: list again
                self._hashes = None

    def has_exactly(self, trajectory_id: str, steps: pa.Table) -> bool:
        """Return whether a shard has a trajectory with equal steps, as neighbours.

        This is quick. After False, `find` tells whether the store has the trajectory, and how.
        """
        sources = self._sources_with(trajectory_id)
        if len(sources) != 1 or sources[0].row_group is None:
            return False
        try:
            stored = self._read(sources[0])
        except FileNotFoundError:
            return False
        rows = stored.ranges.get(trajectory_id)
        if rows is None or len(rows) != steps.num_rows:
            return False
        table = stored.table.slice(rows.start, len(rows))
        return all(table[column.name].equals(steps[column.name]) for column in COMPARED)

    def _sources_with(self, trajectory_id: str) -> list[_Source]:
        """Return the sources with a trajectory, and now and then one with another."""
        if self._hashes is None:
            self._hashes = self._read_all_ids()
        if not self._sources:
            return []
        key = hash(trajectory_id)
        first, last = np.searchsorted(self._hashes, [key, key + 1])
        return [self._sources[number] for number in self._source_of_hash[first:last]]

    def _find(self, trajectory_id: str) -> KnownTrajectory | None:
        rows: list[dict[str, Any]] = []
        paths: list[str] = []
        for source in self._sources_with(trajectory_id):
            table = self._read(source).table
            steps = table.filter(pc.equal(table["trajectory_id"], trajectory_id)).to_pylist()
            # A spool's successor carries the last steps of the trajectories that were open.
            carried = {r["step_index"] for r in rows if source.path.suffix == ".closing"}
            steps = [r for r in steps if r not in rows and r["step_index"] not in carried]
            if steps:
                paths.append(source.path.relative_to(self._store.root).as_posix())
                rows += steps
        if not rows:
            return None
        rows.sort(key=lambda row: -1 if row["step_index"] is None else row["step_index"])
        return KnownTrajectory(where=" and ".join(dict.fromkeys(paths)), rows=rows)

    def _read_all_ids(self) -> NDArray[np.int64]:
        """Return the sorted hashes of all ids, and remember the source of each.

        Spools are read first: one that becomes a shard meanwhile is then found as a shard.
        """
        self._sources = []
        self._cache.clear()
        hashes: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
        counts: list[int] = []
        for source, ids in chain(self._spools(), self._shards()):
            self._sources.append(source)
            hashes.append(np.fromiter(map(hash, ids), np.int64))
            counts.append(len(hashes[-1]))
        merged = np.concatenate(hashes)
        order = np.argsort(merged, kind="stable")
        numbers = np.arange(len(self._sources), dtype=np.uint32)
        self._source_of_hash = np.repeat(numbers, counts)[order]
        return merged[order]

    def _spools(self) -> Iterator[tuple[_Source, Iterable[str]]]:
        for path in sorted(self._store.spool_dir.glob("*"), reverse=True):  # .jsonl, then .closing
            is_spool = path.suffix in (".jsonl", ".closing") and is_plain_file(path)
            if is_spool and path.stem != self._worker_id:
                try:
                    spool = read_spool(path)
                except (FileNotFoundError, SchemaError):
                    continue  # it is a shard now, or damaged, which `check --recover` reports
                if (spool.header.run_id, spool.header.iteration) == (self._run_id, self._iteration):
                    yield _Source(path, None), {row["trajectory_id"] for row in spool.rows}

    def _shards(self) -> Iterator[tuple[_Source, Iterable[str]]]:
        columns = step_columns(["trajectory_id"])
        for shard in self._store.shards(self._run_id, self._iteration):
            # Verify the footer only: reading whole shards with many tokens for the ids is slow.
            with open_parquet(shard.path, dictionaries=["trajectory_id"], whole=False) as file:
                for group in range(file.num_row_groups):
                    table = file.read_row_group(group, columns=["trajectory_id"])
                    table = conform(table, columns, where=str(shard.path), keep_dictionaries=True)
                    ids = table["trajectory_id"].unique().cast(pa.string()).drop_null()
                    yield _Source(shard.path, group), ids.to_pylist()

    def _read(self, source: _Source) -> _Steps:
        if source not in self._cache:
            table = _read(source)
            self._cache[source] = _Steps(table=table, ranges=_ranges(table["trajectory_id"]))
        return self._cache[source]


def _ranges(ids: pa.ChunkedArray) -> dict[str, range]:
    """Return the rows of each value whose rows are neighbours."""
    runs = pc.run_end_encode(ids.combine_chunks(), pa.int64())
    names, ends = runs.values.to_pylist(), runs.run_ends.to_pylist()
    several = {name for name, number in Counter(names).items() if number > 1}
    ranges = zip(names, map(range, [0, *ends], ends), strict=False)
    return {name: rows for name, rows in ranges if name not in several}


def _read(source: _Source) -> pa.Table:
    if source.row_group is None:
        spool = read_spool(source.path)
        return step_table(spool.rows, spool.header.worker_id).select([c.name for c in COMPARED])
    if not source.path.exists():
        raise FileNotFoundError(source.path)
    with open_parquet(source.path) as file:
        names = [column.name for column in COMPARED if column.name in file.schema_arrow.names]
        table = file.read_row_group(source.row_group, columns=names)
    return conform(table, COMPARED, where=str(source.path))
