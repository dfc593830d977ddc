"""Batches computed by the workers of a Ray cluster.

All machines of the cluster have this package, and see the store under the same path. A worker gets
the iteration's work once, reads the steps of its batch from the store itself and sends back what
they came to; the driver holds a few batches at a time, however many workers there are.

Only the driver writes credit. A worker that dies may have done all of its batch or none, and
nobody can tell; since it wrote nothing, its batch is simply computed again. The one thing workers
write is the cache of embeddings, where each file has a name of its own and appears whole: two that
meet the same new text at a time embed it twice, and either vector will do.

Ray is imported when a cluster is connected, since it reads its environment at that moment.
"""

import logging
import os
import platform
import socket
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from graphcredit.credit.iteration.credit_batch import BatchWork, CreditedBatch
from graphcredit.credit.steps.batches import read_batch
from graphcredit.store.errors import (
    EngineError,
    GraphcreditError,
    MissingDependencyError,
    OptionError,
)
from graphcredit.store.extras import how_to_install
from graphcredit.store.workers.pool import RETRIES

_BATCHES_PER_CPU = 2
"""One being computed and one waiting, so that no worker waits for the driver."""

_CONNECT_SECONDS = 10

_ALONE = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # With this, a cluster of one machine listens on its loopback address only.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    # Ray would give a batch that outgrows the memory to one worker after the other, for ever.
    "RAY_task_oom_retries": str(RETRIES),
}
"""Environment of a cluster that is started here and ends with the command."""


@contextmanager
def connect(address: str | None = None) -> Generator["RayEngine"]:
    """Connect to a Ray cluster, and leave it at the end.

    Args:
        address: `HOST:PORT` of its head, or what else `ray.init` takes; by default the environment
            variable RAY_ADDRESS, or else `local`: a cluster of this machine, started for the
            purpose.

    Raises:
        EngineError: Nothing answers there.
        OptionError: It is no address.
        MissingDependencyError: The extra `ray` is not installed.
    """
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    if address == "local":
        os.environ.update(_ALONE)
    ray = _ray()
    try:
        if ":" in address:
            _knock(address)
        alone = {"include_dashboard": False} if address == "local" else {}
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **alone)
    except (OSError, ValueError) as error:
        kind = OptionError if isinstance(error, ValueError) else EngineError
        raise kind(
            f"a Ray cluster must answer at {address!r}: {error}. Start one with `ray start "
            "--head`, give --engine ray:HOST:PORT, or use --engine local."
        ) from error
    try:
        yield RayEngine()
    finally:
        ray.shutdown()


class RayEngine:
    """The workers of the Ray cluster that this process is connected to."""

    def __init__(self) -> None:
        self._ray = _ray()
        self._credit = self._ray.remote(max_retries=RETRIES)(_credit_batch)

    def map(self, work: BatchWork) -> Iterator[CreditedBatch]:
        """Yield the result of each batch, in the order of the plan.

        Raises:
            EngineError: A worker does not see the store, or a batch killed too many of them.
        """
        # A list keeps Ray from sending the work itself with every batch.
        shared = [self._ray.put(work)]
        num_cpus = int(self._ray.cluster_resources().get("CPU", 1))
        waiting: deque[Any] = deque()
        for number in range(len(work.plan.shards_of_batch)):
            if len(waiting) >= _BATCHES_PER_CPU * num_cpus:
                yield _result(waiting.popleft())
            waiting.append(self._credit.remote(shared, number))
        while waiting:
            yield _result(waiting.popleft())


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise MissingDependencyError(
            "--engine ray needs the package 'ray', which is not installed: "
            f"{how_to_install('ray')}, or use --engine local"
        ) from None
    return ray


def _knock(address: str) -> None:
    """Raise OSError at once where Ray would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()


def _result(promise: Any) -> CreditedBatch:
    from ray.exceptions import RayError, RayTaskError

    try:
        return _ray().get(promise)
    except RayTaskError as error:
        if isinstance(error.cause, GraphcreditError):
            raise error.cause from None
        raise
    except RayError as error:
        raise EngineError(
            f"a batch must be done by one of the {RETRIES + 1} workers that it is given to: none "
            f"did it. {error} If memory was short, have fewer CPUs share it, or use --engine local."
        ) from error


def _credit_batch(shared: list[Any], number: int) -> CreditedBatch:
    """Read and credit one batch; this runs in a worker."""
    work = _work_of(*shared)
    for shard in work.plan.shards_of_batch[number]:
        path = work.shards[shard].path
        if not path.exists():
            raise EngineError(
                f"every machine of the cluster must see the store under the same path: {path} is "
                f"not there on {platform.node()}. Mount it, or use --engine local."
            )
    pieces = read_batch(work.shards, work.plan, number, work.settings.columns)
    return work.credit_batch(number, pieces)


@lru_cache(maxsize=1)
def _work_of(reference: Any) -> BatchWork:
    """Return the work of an iteration, unpacked once in each worker."""
    return _ray().get(reference)
