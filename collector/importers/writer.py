"""Write imported trajectories to shards: each trajectory whole in one, and each shard atomically.

An import needs no journal of its steps. After an interruption the same import again adds what is
missing.
"""

import re
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pyarrow as pa

from graphcredit.collector.importers.images.image_types import ImageError
from graphcredit.collector.importers.images.neighbour_files import KeptImage
from graphcredit.collector.importers.messages.values import RecordError
from graphcredit.collector.importers.trajectory import Partition
from graphcredit.collector.recording.known_trajectories import (
    COMPARED,
    KnownTrajectories,
    KnownTrajectory,
    steps_cache,
)
from graphcredit.collector.recording.logged_again import difference, differing_columns, goes_on
from graphcredit.collector.recording.recovery import recover_spools, spool_paths
from graphcredit.collector.recording.shards import next_number, shard_path
from graphcredit.collector.recording.worker_lock import acquire_lock, release_lock
from graphcredit.store.errors import InputError, RecorderError
from graphcredit.store.files.atomic import atomic_path, remove_left_overs
from graphcredit.store.files.lock import held
from graphcredit.store.files.tables import write_table
from graphcredit.store.layout import Store
from graphcredit.store.parquet.outdated import take_out

WORKER = "import"
"""The worker that imported steps are recorded by; so a store has one import at a time."""

SHARD_BYTES = 64 << 20
"""Bytes of steps in memory, in Arrow's form, at which a shard is written."""

_KEPT_BYTES = 256 << 20
"""Bytes of steps of all runs and iterations at which the largest is written."""

_THREADS = 2
"""Shards that are written at a time."""


class EarlierError(InputError):
    """The store has a trajectory with more steps: the log is older."""


class DiffersError(InputError):
    """The store has a trajectory with other values."""

    def __init__(self, how: str, *, columns: tuple[str, ...]) -> None:
        super().__init__(how)
        self.columns = columns


@contextmanager
def writing(store: Store) -> Generator["ImportWriter"]:
    """Open a store for an import; at the end of the block, everything is in shards.

    Raises:
        RecorderError: Another import writes to the store.
    """
    recover_spools(store)
    path = spool_paths(store, WORKER).lock
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = acquire_lock(path)
    if lock is None:
        raise RecorderError(
            f"a store can have one import at a time: another one writes to {store.root}. Wait for "
            f"it, then start this one again. {held(path)}"
        )
    try:
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="shards-import") as threads:
            writer = ImportWriter(store, threads)
            try:
                yield writer
            finally:
                writer.close()
    finally:
        release_lock(path, lock)


class ImportWriter:
    """Collects steps of any runs and iterations, and writes them to shards."""

    def __init__(self, store: Store, threads: ThreadPoolExecutor) -> None:
        self._store = store
        self._threads = threads
        self._kept: dict[Partition, list[pa.Table]] = {}
        self._waiting: dict[Partition, set[str]] = {}
        """Ids of new trajectories that are in no shard yet."""
        self._num_bytes: dict[Partition, int] = {}
        self._next: dict[Partition, int] = {}
        """Number of the next shard."""
        self._known: dict[Partition, KnownTrajectories] = {}
        self._begun: set[tuple[Partition, str]] = set()
        """New trajectories that the store has the beginning of."""
        self._outdated: dict[Partition, set[str]] = {}
        """Those that are written."""
        self._cache = steps_cache()
        self._writing: deque[Future[None]] = deque()

    def is_new(self, partition: Partition, trajectory_id: str, steps: pa.Table) -> bool:
        """Return whether a trajectory is new; the store may have it with the same steps.

        One that goes on from that of the store is new: see `replaces`.

        Raises:
            EarlierError: The store has these steps and more.
            DiffersError: The store has other steps under its id.
        """
        if partition not in self._known:
            run_id, iteration = partition
            self._known[partition] = KnownTrajectories(
                self._store, run_id=run_id, iteration=iteration, worker_id=WORKER, cache=self._cache
            )
        if self._known[partition].has_exactly(trajectory_id, steps):
            return False
        known = self._known[partition].find(trajectory_id)
        if known is None:
            self._waiting.setdefault(partition, set()).add(trajectory_id)
            return True
        rows = steps.select([c.name for c in COMPARED]).to_pylist()
        if goes_on(known, rows) and "spool/" not in known.where:
            self._begun.add((partition, trajectory_id))
            self._waiting.setdefault(partition, set()).add(trajectory_id)
            return True
        if goes_on(KnownTrajectory(where="", rows=rows), known.rows):
            raise EarlierError
        differs = difference(known, rows)
        if differs:
            has_as_many = len(rows) == len(known.rows)
            raise DiffersError(
                f"{trajectory_id} is in {known.where} and {differs}",
                columns=differing_columns(known, rows) if has_as_many else ("number of steps",),
            )
        return False

    def replaces(self, partition: Partition, trajectory_id: str) -> bool:
        """Return whether the store has the beginning of a new trajectory, and give that up."""
        if (partition, trajectory_id) not in self._begun:
            return False
        self._begun.remove((partition, trajectory_id))
        self._outdated.setdefault(partition, set()).add(trajectory_id)
        return True

    def settle(self, partition: Partition, trajectory_id: str) -> None:
        """Put a trajectory that was written into a shard, so that the store has it.

        Raises:
            OSError: A shard could not be written.
        """
        if trajectory_id in self._waiting.get(partition, ()):
            if partition in self._kept:
                self._write_shard(partition)
            while self._writing:
                self._writing.popleft().result()
            self._known.pop(partition, None)

    def keep(self, images: Sequence[KeptImage]) -> None:
        """Put the images into the store that it lacks, before the steps that name them.

        Raises:
            RecordError: The file of an image has changed since it was read.
            OSError: An image could not be written.
        """
        for image in images:
            path = self._store.root / image.path
            if not path.exists():
                try:
                    content = image.read()
                except ImageError as error:
                    raise RecordError(str(error)) from None
                with atomic_path(path) as temporary:
                    temporary.write_bytes(content)

    def write(self, partition: Partition, steps: pa.Table) -> None:
        """Add whole trajectories.

        Raises:
            OSError: An earlier shard could not be written.
        """
        self._kept.setdefault(partition, []).append(steps)
        self._num_bytes[partition] = self._num_bytes.get(partition, 0) + steps.nbytes
        if self._num_bytes[partition] >= SHARD_BYTES:
            self._write_shard(partition)
        elif sum(self._num_bytes.values()) >= _KEPT_BYTES:
            self._write_shard(max(self._num_bytes, key=self._num_bytes.__getitem__))

    def _write_shard(self, partition: Partition) -> None:
        run_id, iteration = partition
        directory = self._store.steps_dir(run_id, iteration)
        if partition not in self._next:
            remove_left_overs(directory, re.compile(rf"{WORKER}-\d+\.parquet").fullmatch)
            self._next[partition] = next_number(directory, WORKER)
        path = shard_path(directory, WORKER, self._next[partition])
        self._next[partition] += 1
        if outdated := self._outdated.pop(partition, None):  # before the shard: nothing is double
            take_out(self._store, run_id, iteration, outdated)
            self._known.pop(partition, None)
            self._cache.clear()
        self._waiting.pop(partition, None)
        tables = self._kept.pop(partition)
        del self._num_bytes[partition]
        while len(self._writing) >= _THREADS:
            self._writing.popleft().result()
        table = pa.concat_tables(tables)
        self._writing.append(self._threads.submit(write_table, table, path))

    def close(self) -> None:
        """Write everything that was added.

        Raises:
            OSError: A shard could not be written.
        """
        for partition in list(self._kept):
            self._write_shard(partition)
        while self._writing:
            self._writing.popleft().result()
