"""Processes that replay decisions, one task each at a time.

The parent sends a task's work; the worker answers with the rows of each trajectory, then with None.
Workers write nothing, so they may be ended at any time.
"""

import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any

from graphcredit.collector.environments.prefix_cache import Environments
from graphcredit.collector.playing.processes import end_with_parent, interrupts_blocked
from graphcredit.collector.replaying.values import Playing
from graphcredit.collector.replaying.work import Log, Row, TaskWork, replay_task
from graphcredit.store.errors import GraphcreditError
from graphcredit.store.processors import num_processors


@dataclass(kw_only=True, slots=True)
class _Worker:
    """One worker process, in its parent."""

    process: BaseProcess
    connection: "Connection[Any, Any]"
    work: TaskWork | None = None
    """What it is at."""


def replay_here(log: Log, playing: Playing, works: Iterable[TaskWork]) -> Generator[list[Row]]:
    """Replay in this process; yield the rows of each trajectory."""
    with closing(Environments()) as environments:
        for work in works:
            yield from replay_task(log, playing, work, environments)


def replay_in_workers(
    log: Log, playing: Playing, works: Iterable[TaskWork], num_workers: int, casualties: list[str]
) -> Generator[list[Row]]:
    """Replay in several processes; yield the rows of each trajectory as they come.

    Args:
        log: The iteration.
        playing: How to play on.
        works: The tasks, in the order in which they are begun.
        num_workers: Number of processes.
        casualties: Receives a message for each worker that died.

    Raises:
        GraphcreditError: A worker raised this error.
    """
    waiting = iter(works)
    workers: list[_Worker] = []
    try:
        for _ in range(num_workers):
            workers.append(_start(log, playing, num_workers))
            _send(workers[-1], waiting)
        while busy := [worker for worker in workers if worker.work is not None]:
            ready = wait([worker.connection for worker in busy])
            for worker in [worker for worker in busy if worker.connection in ready]:
                yield from _answer(worker, waiting, casualties)
    finally:
        for worker in workers:
            worker.connection.close()
            worker.process.terminate()
        for worker in workers:
            worker.process.join()


def _answer(
    worker: _Worker, waiting: Iterator[TaskWork], casualties: list[str]
) -> Iterator[list[Row]]:
    try:
        answer: list[Row] | GraphcreditError | None = worker.connection.recv()
    except (EOFError, OSError):
        worker.process.join()
        at = worker.work.task_id if worker.work else "nothing"
        casualties.append(f"a worker died at {at}, exit code {worker.process.exitcode}")
        worker.work = None
        return
    if isinstance(answer, GraphcreditError):
        raise answer
    if answer is None:
        _send(worker, waiting)
    else:
        yield answer


def _send(worker: _Worker, waiting: Iterator[TaskWork]) -> None:
    """Send a worker its next task, if there is one; a dead worker is noticed by `_answer`."""
    worker.work = next(waiting, None)
    if worker.work is not None:
        with suppress(OSError):
            worker.connection.send(worker.work)


def _start(log: Log, playing: Playing, num_workers: int) -> _Worker:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    num_threads = max(1, num_processors() // num_workers)
    process = context.Process(target=_work, args=(theirs, log, playing, num_threads))
    with interrupts_blocked():
        process.start()
    theirs.close()
    return _Worker(process=process, connection=ours)


def _work(connection: "Connection[Any, Any]", log: Log, playing: Playing, num_threads: int) -> None:
    Thread(target=end_with_parent, daemon=True).start()
    os.dup2(2, 1)  # output of libraries must not end up among our parent's results
    os.environ.setdefault("OMP_NUM_THREADS", str(num_threads))  # read when torch is imported
    with suppress(EOFError, OSError), closing(Environments()) as environments:
        while True:
            work: TaskWork = connection.recv()
            try:
                for rows in replay_task(log, playing, work, environments):
                    connection.send(rows)
            except GraphcreditError as error:
                connection.send(error)
                return
            connection.send(None)
