"""Processes that play rollouts, and the conversation with them.

A worker is told as many rollouts as it plays at a time, answers with the outcomes of each that has
ended, and is told another one for it, or that there are no more. When its parent closes the pipe,
it finishes what it is at and goes home. When its parent dies it ends at once, and what it recorded
is recovered as that of any dead worker. A worker that died is noticed by its closed pipe. So nobody
waits for the dead, on either side.
"""

import os
import signal
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any

from graphcredit.collector.environments.prefix_cache import Environments
from graphcredit.collector.playing.job import Job, Outcome
from graphcredit.collector.playing.run_rollouts import play_each
from graphcredit.collector.playing.schedule import Rollout, Schedule
from graphcredit.collector.recording.recorder import StepRecorder
from graphcredit.store.errors import GraphcreditError


@dataclass(kw_only=True, slots=True)
class _Worker:
    """One process, as its parent sees it."""

    process: BaseProcess
    connection: "Connection[Any, Any]"
    playing: dict[str, Rollout]
    """What it has not answered yet, by trajectory."""
    latest: Rollout | None = None
    """What it was told last."""
    knows_all: bool = False
    """It was told that there are no more."""

    def tell(self, rollout: Rollout | None) -> None:
        """Hand over a rollout; that the worker is dead shows when it is listened to."""
        if rollout is None:
            self.knows_all = True
        else:
            self.latest = self.playing[rollout.trajectory_id] = rollout
        with suppress(OSError):
            self.connection.send(rollout)

    def hear(self) -> list[Outcome] | None:
        """Return its answer, or None when it is dead."""
        try:
            answer: list[Outcome] | GraphcreditError = self.connection.recv()
        except (EOFError, OSError):
            return None
        if isinstance(answer, GraphcreditError):
            raise answer
        del self.playing[answer[0].trajectory_id]
        return answer

    def obituary(self) -> str:
        """Return what is known about its death."""
        name, *others = self.playing or ("",)
        what = f"playing {name}" if name else "with nothing to play"
        what += f" and {len(others)} others" if others else ""
        return f"worker {self.process.name} died {what}, exit code {self.process.exitcode}"


def play_all(
    job: Job, schedule: Schedule, worker_ids: Sequence[str], casualties: list[str]
) -> Generator[list[Outcome]]:
    """Play a schedule in several processes; yield the outcomes of each rollout as they come.

    Closing the generator lets each worker finish the trajectories it is at.

    Args:
        job: What all workers know.
        schedule: What to play.
        worker_ids: One process each.
        casualties: Gets a line for every worker that died; what it was playing stays unplayed.

    Raises:
        GraphcreditError: A worker cannot go on, for a reason it could tell.
    """
    workers: list[_Worker] = []
    try:
        workers.extend(_start(job, worker_id, len(worker_ids)) for worker_id in worker_ids)
        for _ in range(job.concurrency):
            for worker in workers:
                _go_on(worker, schedule)
        busy = [worker for worker in workers if worker.playing]
        while busy:
            ready = wait([worker.connection for worker in busy])
            for worker in [worker for worker in busy if worker.connection in ready]:
                outcomes = worker.hear()
                if outcomes is not None:
                    yield outcomes
                    _go_on(worker, schedule)
                if outcomes is None or not worker.playing:
                    busy.remove(worker)
    finally:
        for worker in workers:
            worker.connection.close()
        for worker in workers:
            worker.process.join()
        casualties += [w.obituary() for w in workers if w.process.exitcode != 0]


def _go_on(worker: _Worker, schedule: Schedule) -> None:
    """Give a worker its next rollout, or tell it once that there is none."""
    if not worker.knows_all:
        worker.tell(schedule.next_rollout(worker.latest))


def _start(job: Job, worker_id: str, num_workers: int) -> _Worker:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    num_threads = max(1, len(os.sched_getaffinity(0)) // num_workers)
    process = context.Process(
        target=_work, args=(theirs, job, worker_id, num_threads), name=worker_id
    )
    with _interrupts_blocked():
        process.start()
    theirs.close()
    return _Worker(process=process, connection=ours, playing={})


@contextmanager
def _interrupts_blocked() -> Generator[None]:
    """Start children that Ctrl-C does not reach: their parent tells them when to stop."""
    resource_tracker.ensure_running()  # the first start would do this, and unblock interrupts
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _work(connection: "Connection[Any, Any]", job: Job, worker_id: str, num_threads: int) -> None:
    Thread(target=_end_with_parent, daemon=True).start()
    os.dup2(2, 1)  # a library that prints must not write into our parent's results
    os.environ.setdefault("OMP_NUM_THREADS", str(num_threads))  # read when torch is imported
    gone = suppress(BrokenPipeError, ConnectionResetError)
    with gone:
        try:
            with (
                closing(Environments()) as environments,
                StepRecorder(
                    job.store, run_id=job.run_id, iteration=job.iteration, worker_id=worker_id
                ) as recorder,
            ):
                for outcomes in play_each(job, _received(connection), recorder, environments):
                    with gone:  # what is still open is played to its end all the same
                        connection.send(outcomes)
        except GraphcreditError as error:
            connection.send(error)


def _end_with_parent() -> None:
    """End this process when its parent has ended: whoever comes next plays what is open here."""
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _received(connection: "Connection[Any, Any]") -> Iterator[Rollout]:
    with suppress(EOFError, ConnectionResetError):
        while (rollout := connection.recv()) is not None:
            yield rollout
