"""Trajectories without a copy in the store after a quarantine, and the way back for them."""

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from graphcredit.store.checks.find_files import find_files
from graphcredit.store.layout import Store
from graphcredit.store.quarantine.plan import Move, trajectories_of
from graphcredit.store.sql.views import quoted

_STEPS = re.compile(r"steps/run_id=(?P<run_id>[^/]*)/iteration=(?P<iteration>\d+)/[^/]*")

_Key = tuple[str, int, str | None]
"""Run, iteration, trajectory."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lost:
    """A trajectory of which no step is left in its run and iteration."""

    run_id: str
    iteration: int
    trajectory_id: str | None
    """None stands for all rows without an id."""
    files: tuple[str, ...]
    """The quarantined files with its steps, relative to the store's root."""

    @property
    def message(self) -> str:
        """Say that the trajectory is gone, and which files have it."""
        what = "step without a trajectory_id"
        if self.trajectory_id is not None:
            what = f"copy of trajectory {self.trajectory_id!r}"
        return (
            f"no {what} is left in run {self.run_id}, iteration {self.iteration}: "
            f"its steps are in {', '.join(self.files)}"
        )

    def remedy(self, store: Store) -> str:
        """Say how to bring the trajectory back into a store."""
        source, folder = store.root / self.files[0], store.steps_dir(self.run_id, self.iteration)
        where = "trajectory_id IS NULL"
        if self.trajectory_id is not None:
            where = f"trajectory_id = {quoted(self.trajectory_id)}"
        sql = (
            f"COPY (FROM read_parquet({quoted(str(source))}, hive_partitioning=false) "
            f"WHERE {where}) TO {quoted(str(folder / 'back-000000.parquet'))} (FORMAT parquet)"
        )
        return (
            "to bring one back, write its correct rows as a new shard, for example: "
            f"graphcredit sql --unlocked {shlex.quote(str(store.root))} {shlex.quote(sql)}"
        )


def lost_trajectories(store: Store, moved: Iterable[Move]) -> list[Lost]:
    """Return the refused trajectories of which the store has no step now.

    Args:
        store: The store.
        moved: The files that were moved.
    """
    files: defaultdict[_Key, list[str]] = defaultdict(list)
    for item in moved:
        if match := _STEPS.fullmatch(item.source):
            for trajectory in item.refused:
                files[match["run_id"], int(match["iteration"]), trajectory].append(item.target)
    present = _present(store, {key[:2] for key in files})
    return [
        Lost(run_id=key[0], iteration=key[1], trajectory_id=key[2], files=tuple(targets))
        for key, targets in files.items()
        if key not in present
    ]


def _present(store: Store, partitions: set[tuple[str, int]]) -> set[_Key]:
    """Return the trajectories in some runs and iterations; unreadable shards are left out."""
    present: set[_Key] = set()
    for table in find_files(store)[0] if partitions else ():
        run_id, iteration = table.run_id, table.iteration
        if table.kind != "steps" or run_id is None or iteration is None:
            continue
        if (run_id, iteration) in partitions:
            ids = trajectories_of(table)
            present |= {(run_id, iteration, trajectory) for trajectory in ids}
    return present
