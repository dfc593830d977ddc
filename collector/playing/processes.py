"""Worker processes that play rollouts, and the protocol between them and their parent.

The parent sends a worker as many rollouts as it plays at a time. The worker answers with the
outcomes of each finished rollout, and gets another one in its place, or None if there are no more.
When the parent closes the pipe, the worker finishes its open rollouts and exits. When the parent
dies, the worker exits at once, and its spool is recovered like that of any dead worker. The parent
notices a dead worker by its closed pipe. So neither side waits for a dead process.
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
from graphcredit.store.plural import counted
from graphcredit.store.processors import num_processors


@dataclass(kw_only=True, slots=True)
class _Worker:
    """One worker process, in its parent."""

    process: BaseProcess
    connection: "Connection[Any, Any]"
    playing: dict[str, Rollout]
    """Rollouts without an answer yet, by trajectory."""
    latest: Rollout | None = None
    """The rollout that was sent last."""
    knows_all: bool = False
    """Whether the worker was told that there are no more rollouts."""

    def send(self, rollout: Rollout | None) -> None:
        """Send a rollout, or None for no more; a dead worker is noticed by `receive`."""
        if rollout is None:
            self.knows_all = True
        else:
            self.latest = self.playing[rollout.trajectory_id] = rollout
        with suppress(OSError):
            self.connection.send(rollout)

    def receive(self) -> list[Outcome] | None:
        """Return the outcomes of a finished rollout, or None if the worker is dead."""
        try:
            answer: list[Outcome] | GraphcreditError = self.connection.recv()
        except (EOFError, OSError):
            return None
        if isinstance(answer, GraphcreditError):
            raise answer
        del self.playing[answer[0].trajectory_id]
        return answer

    def death_report(self) -> str:
        """Return a message about a dead worker: its open rollouts, and its exit code."""
        name, *others = self.playing or ("",)
        what = f"playing {name}" if name else "with nothing to play"
        what += f" and {counted(len(others), 'other')}" if others else ""
        return f"worker {self.process.name} died {what}, exit code {self.process.exitcode}"


def play_all(
    job: Job, schedule: Schedule, worker_ids: Sequence[str], casualties: list[str]
) -> Generator[list[Outcome]]:
    """Play a schedule in several processes; yield the outcomes of each rollout when it ends.

    When the generator is closed, each worker finishes its open trajectories.

    Args:
        job: The job of all workers.
        schedule: The rollouts to play.
        worker_ids: A name for each process.
        casualties: Receives a message for each dead worker; its open rollouts stay unplayed.

    Raises:
        GraphcreditError: A worker raised this error.
    """
    workers: list[_Worker] = []
    try:
        workers.extend(_start(job, worker_id, len(worker_ids)) for worker_id in worker_ids)
        for _ in range(job.concurrency):
            for worker in workers:
                _send_next(worker, schedule)
        busy = [worker for worker in workers if worker.playing]
        while busy:
            ready = wait([worker.connection for worker in busy])
            for worker in [worker for worker in busy if worker.connection in ready]:
                outcomes = worker.receive()
                if outcomes is not None:
                    yield outcomes
                    _send_next(worker, schedule)
                if outcomes is None or not worker.playing:
                    busy.remove(worker)
    finally:
        for worker in workers:
            worker.connection.close()
        for worker in workers:
            worker.process.join()
        casualties += [w.death_report() for w in workers if w.process.exitcode != 0]


def _send_next(worker: _Worker, schedule: Schedule) -> None:
    """Send a worker its next rollout, or once None if there is none."""
    if not worker.knows_all:
        worker.send(schedule.next_rollout(worker.latest))


def _start(job: Job, worker_id: str, num_workers: int) -> _Worker:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    num_threads = max(1, num_processors() // num_workers)
    process = context.Process(
        target=_work, args=(theirs, job, worker_id, num_threads), name=worker_id
    )
    with interrupts_blocked():
        process.start()
    theirs.close()
    return _Worker(process=process, connection=ours, playing={})


@contextmanager
def interrupts_blocked() -> Generator[None]:
    """Block Ctrl-C in children that are started in this block: their parent stops them."""
    resource_tracker.ensure_running()  # else the first start does this and unblocks SIGINT
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _work(connection: "Connection[Any, Any]", job: Job, worker_id: str, num_threads: int) -> None:
    Thread(target=end_with_parent, daemon=True).start()
    os.dup2(2, 1)  # output of libraries must not end up among our parent's results
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
                    with gone:  # the parent may stop listening; open rollouts are still finished
                        connection.send(outcomes)
        except GraphcreditError as error:
            connection.send(error)


def end_with_parent() -> None:
    """Exit when the parent has exited: the same command again plays what was open."""
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _received(connection: "Connection[Any, Any]") -> Iterator[Rollout]:
    with suppress(EOFError, ConnectionResetError):
        while (rollout := connection.recv()) is not None:
            yield rollout
