"""Processes that play rollouts, and the conversation with them.

A worker is told one rollout at a time and answers with its outcome. It goes home when the other end
of its pipe is closed, whether on purpose or because the parent died; a worker that died is noticed
the same way. So nobody waits for the dead, on either side.
"""

import os
import signal
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from graphcredit.collector.job import Job, Outcome
from graphcredit.collector.play import play_each
from graphcredit.collector.recorder import StepRecorder
from graphcredit.collector.schedule import Rollout, Schedule
from graphcredit.store.errors import GraphcreditError


@dataclass(kw_only=True, slots=True)
class _Worker:
    """One process, as its parent sees it."""

    process: BaseProcess
    connection: "Connection[Any, Any]"
    rollout: Rollout | None = None
    """What it plays now, or played last."""

    def tell(self, rollout: Rollout) -> None:
        """Hand over a rollout; that the worker is dead shows when it is listened to."""
        self.rollout = rollout
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
        return answer

    def obituary(self) -> str:
        """Return what is known about its death."""
        what = f"playing {self.rollout.trajectory_id}" if self.rollout else "starting"
        return f"worker {self.process.name} died {what}, exit code {self.process.exitcode}"


def play_all(
    job: Job, schedule: Schedule, worker_ids: Sequence[str], casualties: list[str]
) -> Generator[list[Outcome]]:
    """Play a schedule in several processes; yield the outcomes of each rollout as they come.

    Closing the generator lets each worker finish the trajectory it is at.

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
        workers.extend(_start(job, worker_id) for worker_id in worker_ids)
        busy = [worker for worker in workers if _go_on(worker, schedule)]
        while busy:
            ready = wait([worker.connection for worker in busy])
            for worker in [worker for worker in busy if worker.connection in ready]:
                outcomes = worker.hear()
                if outcomes is not None:
                    yield outcomes
                if outcomes is None or not _go_on(worker, schedule):
                    busy.remove(worker)
    finally:
        for worker in workers:
            worker.connection.close()
        for worker in workers:
            worker.process.join()
        casualties += [w.obituary() for w in workers if w.process.exitcode != 0]


def _go_on(worker: _Worker, schedule: Schedule) -> bool:
    """Give a worker its next rollout, or send it home."""
    rollout = schedule.next_rollout(worker.rollout)
    if rollout is None:
        worker.connection.close()
        return False
    worker.tell(rollout)
    return True


def _start(job: Job, worker_id: str) -> _Worker:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, job, worker_id), name=worker_id)
    with _interrupts_blocked():
        process.start()
    theirs.close()
    return _Worker(process=process, connection=ours)


@contextmanager
def _interrupts_blocked() -> Generator[None]:
    """Start children that Ctrl-C does not reach: their parent tells them when to stop."""
    resource_tracker.ensure_running()  # the first start would do this, and unblock interrupts
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _work(connection: "Connection[Any, Any]", job: Job, worker_id: str) -> None:
    os.dup2(2, 1)  # a library that prints must not write into our parent's results
    with suppress(BrokenPipeError, ConnectionResetError):
        try:
            with StepRecorder(
                job.store, run_id=job.run_id, iteration=job.iteration, worker_id=worker_id
            ) as recorder:
                for outcomes in play_each(job, _received(connection), recorder):
                    connection.send(outcomes)
        except GraphcreditError as error:
            connection.send(error)


def _received(connection: "Connection[Any, Any]") -> Iterator[Rollout]:
    with suppress(EOFError, ConnectionResetError):
        while True:
            yield connection.recv()
