"""Batches computed by processes of this machine, for work that is mostly Python.

A worker gets the iteration's work once, and reads the steps of its batches from the store itself.
Workers write nothing, so that of one that dies nothing is left but a message.
"""

import os
import signal
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any

from graphcredit.credit.iteration.credit_batch import BatchWork, CreditedBatch
from graphcredit.credit.iteration.engines.local import LOCAL
from graphcredit.credit.steps.batches import read_batch
from graphcredit.store.errors import EngineError

_BATCHES_PER_WORKER = 2
"""One being computed and one waiting, so that no worker waits for the one that writes."""


class ProcessEngine:
    """Some worker processes for each iteration of several batches."""

    def __init__(self, num_workers: int) -> None:
        self._num_workers = num_workers

    def map(self, work: BatchWork) -> Iterator[CreditedBatch]:
        """Yield the result of each batch, in the order of the plan.

        Raises:
            EngineError: A worker died.
        """
        num_batches = len(work.plan.shards_of_batch)
        if num_batches < 2:
            yield from LOCAL.map(work)
            return
        context = get_context("spawn")
        told, tell = context.Pipe(duplex=False)
        pool = ProcessPoolExecutor(
            min(self._num_workers, num_batches), context, _begin, (work, told)
        )
        waiting: deque[Future[CreditedBatch]] = deque()
        try:
            for number in range(num_batches):
                if len(waiting) >= _BATCHES_PER_WORKER * self._num_workers:
                    yield waiting.popleft().result()
                waiting.append(pool.submit(_credit_batch, number))
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise EngineError(
                "each batch must be done by a worker process, but one of "
                f"{self._num_workers} died: {error}. If memory was short, use fewer --workers."
            ) from error
        finally:
            tell.close()
            pool.shutdown(cancel_futures=True)
            told.close()


_work: list[BatchWork] = []
"""The work of this process, if it is a worker."""


def _begin(work: BatchWork, told: "Connection[Any, Any]") -> None:
    # Ctrl-C reaches all processes of a terminal; the one that writes ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end, args=(told,), daemon=True).start()
    _work.append(work)


def _end(told: "Connection[Any, Any]") -> None:
    """End this process when the other end of a pipe is closed, be it because its owner died."""
    told.poll(None)
    os._exit(1)


def _credit_batch(number: int) -> CreditedBatch:
    (work,) = _work
    return work.credit_batch(number, read_batch(work.shards, work.plan, number, work.columns()))
