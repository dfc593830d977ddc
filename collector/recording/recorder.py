"""Record an agent's steps one at a time, so that no acknowledged step is lost."""

import math
import secrets
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import numpy as np

from graphcredit.collector.recording.journal import Journal, ShardLimits
from graphcredit.collector.recording.known_trajectories import KnownTrajectories
from graphcredit.collector.recording.logged_again import Again
from graphcredit.collector.recording.recovery import Recovered
from graphcredit.collector.recording.trajectory import Drafts, Sink, Together, Trajectory
from graphcredit.collector.recording.validation import check_value
from graphcredit.collector.recording.worker_lock import ProcessLock
from graphcredit.store.errors import OptionError, StepRefusedError, system_errors
from graphcredit.store.layout import Store, check_name, create_store
from graphcredit.store.plural import counted

_LARGEST_SHARD_BYTES = 1 << 30
"""Half the capacity of one Arrow array of text."""


class StepRecorder:
    """Records the trajectories of one worker.

        with StepRecorder("store", run_id="r0", iteration=3, worker_id="w7") as recorder:
            with recorder.trajectory(task_id="kitchen-12") as trajectory:
                trajectory.log(state=s, action=a, next_state=t, reward=0.0)
                trajectory.end(success=True)

    When `log` returns, the step survives the death of the process: it is in the worker's spool. The
    worker's next recorder, or `graphcredit check --recover`, turns the spool into a shard. Threads
    and asyncio tasks may keep any number of trajectories open at a time. A recorder belongs to the
    process that opened it: after a fork, open another one with another `worker_id`.
    """

    recovered: tuple[Recovered, ...]
    """Spools that an earlier recorder of this worker left behind; they are shards now."""
    num_already_there: int
    """Number of trajectories that were logged again with the stored steps, and not written."""

    @system_errors()
    def __init__(
        self,
        store: Store | str | Path,
        *,
        run_id: str,
        iteration: int,
        worker_id: str,
        durability: Literal["flush", "fsync"] = "flush",
        max_rows: int = 65_536,
        max_bytes: int = 32 << 20,
        max_age: float = 300.0,
    ):
        """Open the recorder, and recover the spools that an earlier one of this worker left behind.

        Args:
            store: A store, or its path; it is created if there is none.
            run_id: The run; letters, digits, '.', '_' and '-'.
            iteration: Policy iteration, from 0.
            worker_id: The worker; it can have one live recorder in a store at a time.
            durability: "flush" survives the death of the process, "fsync" also a power failure.
            max_rows: Most steps in a shard.
            max_bytes: Most bytes of a spool, before compression; up to 1 GiB.
            max_age: Most seconds until a shard is closed; checked whenever a step is logged.

        Raises:
            InputError: A name or an option breaks its rule, or `store` is not a store.
            RecorderError: The worker has a live recorder already.
            PathError: The store cannot be written.
            DiskError: The disk is full, or fails.
        """
        check_name("run_id", run_id)
        self._worker_id = check_name("worker_id", worker_id)
        _check_options(iteration, durability, max_rows, max_bytes, max_age)
        opened = store if isinstance(store, Store) else create_store(store)
        self._journal = Journal(
            opened,
            run_id=run_id,
            iteration=int(iteration),
            worker_id=worker_id,
            limits=ShardLimits(max_rows=max_rows, max_bytes=max_bytes, max_age=max_age),
            fsync=durability == "fsync",
        )
        self.recovered = tuple(self._journal.recovered)
        self._given_ids: set[str] = set()
        self._known = KnownTrajectories(
            opened, run_id=run_id, iteration=int(iteration), worker_id=worker_id
        )
        self.num_already_there = 0
        self._lock = ProcessLock()

    def trajectory(self, *, task_id: str, trajectory_id: str | None = None) -> Trajectory:
        """Start a trajectory.

        Args:
            task_id: Rollouts with one task id started from the same task and initial state.
            trajectory_id: Unique within the run and iteration; by default a new one, unique over
                workers and restarts. A complete trajectory of the store, from an earlier process or
                another worker, may be logged again with the same steps: nothing is written then,
                and `num_already_there` counts it. Two live recorders do not see each other's new
                steps; `graphcredit check` finds ids that both used.

        Raises:
            StepRefusedError: An id is not text, is empty, was used before, or belongs to an
                incomplete trajectory of the store.
            SchemaError: A shard of the iteration cannot be read, so its ids are unknown.
        """
        return self._begin(self._journal, task_id, trajectory_id)

    @contextmanager
    def together(self) -> Generator[Together]:
        """Start trajectories that are written together when the block ends: all of them or none.

            with recorder.together() as group:
                with group.trajectory(task_id="kitchen-12") as trajectory:
                    ...

        After an exception, or if the process dies, none of them is in the store.

        Raises:
            RecorderError: Writing failed, or the recorder is closed.
        """
        drafts = Drafts()
        yield Together(lambda task_id, name: self._begin(drafts, task_id, name))
        with self._lock:
            self._journal.append_all(drafts.rows)

    def _begin(self, sink: Sink, task_id: str, trajectory_id: str | None) -> Trajectory:
        task_id = check_value("task_id", task_id)
        is_new = trajectory_id is None
        if is_new:
            trajectory_id = f"{self._worker_id}-{secrets.token_hex(8)}"
        trajectory_id = str(check_value("trajectory_id", trajectory_id))
        with self._lock:
            if trajectory_id in self._given_ids:
                raise StepRefusedError(
                    "trajectory_id must be unique within a run and iteration: "
                    f"{trajectory_id!r} was used before. Leave it out to get a new one"
                )
            known = None if is_new else self._known.find(trajectory_id)
            if known is not None:
                sink = Again(known, self._count_already_there)
            self._given_ids.add(trajectory_id)
        return Trajectory(sink, self._lock, task_id, trajectory_id)

    def _count_already_there(self) -> None:
        self.num_already_there += 1

    def close(self) -> None:
        """Write every step to a shard; trajectories without an end stay incomplete.

        Raises:
            RecorderError: A shard could not be written; its steps stay in the spool.
        """
        with self._lock:
            is_first = self._journal.close()
        if is_first and self.num_already_there:
            warnings.warn(
                f"{counted(self.num_already_there, 'rollout')} already in the store, with the "
                "same steps: not written again",
                stacklevel=2,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _check_options(
    iteration: object, durability: str, max_rows: object, max_bytes: object, max_age: object
) -> None:
    if not isinstance(iteration, (int, np.integer)) or not 0 <= iteration < 1 << 31:
        raise OptionError(f"iteration must be an integer from 0: got {iteration!r}")
    if durability not in ("flush", "fsync"):
        raise OptionError(f"durability must be 'flush' or 'fsync': got {durability!r}")
    if not isinstance(max_rows, int) or max_rows < 1:
        raise OptionError(f"max_rows must be an integer from 1: got {max_rows!r}")
    if not isinstance(max_bytes, int) or not 1 <= max_bytes <= _LARGEST_SHARD_BYTES:
        raise OptionError(f"max_bytes must be from 1 to {_LARGEST_SHARD_BYTES}: got {max_bytes!r}")
    if not isinstance(max_age, (int, float)) or not max_age > 0 or math.isnan(max_age):
        raise OptionError(f"max_age must be more than 0 seconds: got {max_age!r}")
