"""The engines that compute batches: this machine's processes, or a Ray cluster.

An engine computes and the stage writes: whichever process computes a batch, its result comes back
to the one that writes, in the order of the plan. So the bytes do not depend on the engine. A batch
whose worker dies is computed by another one, up to three times, and is still written once.

The one thing that workers write is the cache of embeddings, where each file has a name of its own
and appears whole: two that meet the same new text at a time embed it twice, and either vector will
do.
"""

from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Protocol

from graphcredit.credit.iteration.credit_batch import BatchWork, CreditedBatch
from graphcredit.credit.merging.table import MergeSettings, merge_named
from graphcredit.credit.steps.batches import read_batch, read_batches
from graphcredit.store.errors import OptionError
from graphcredit.store.near_names import must_be_one_of
from graphcredit.store.workers.pool import ENGINES, WorkerPool, num_processes, num_processors
from graphcredit.store.workers.ray import RayPool, connect

_BATCHES_PER_WORKER = 2
"""One being computed and one waiting, so that no worker waits for the one that writes."""

_MOST_WORKERS = 4
"""By default: each holds a batch, up to a gibibyte of steps."""


class BatchEngine(Protocol):
    """Computes the batches of an iteration."""

    def map(self, work: BatchWork) -> Iterator[CreditedBatch]:
        """Yield the result of each batch, in the order of the plan."""
        ...


class LocalEngine:
    """This process, which reads the next batch ahead; or worker processes, if they pay off."""

    def __init__(self, num_workers: int = 1) -> None:
        """Use so many worker processes; with 1, this process alone."""
        self._num_workers = num_workers

    def map(self, work: BatchWork) -> Iterator[CreditedBatch]:
        """Yield the result of each batch, in the order of the plan.

        Raises:
            EngineError: A batch was lost with four workers.
        """
        num_batches = len(work.plan.shards_of_batch)
        num_workers = min(self._num_workers, num_batches)
        if num_workers > 1:
            pool = WorkerPool(
                work=partial(_credit_batches, work),
                num_workers=num_workers,
                pieces_at_once=_BATCHES_PER_WORKER,
            )
            with closing(pool.in_order(range(num_batches))) as credited:
                yield from credited
        else:
            batches = read_batches(work.shards, work.plan, work.settings.columns)
            for number, pieces in enumerate(batches):
                yield work.credit_batch(number, pieces)


def _credit_batches(work: BatchWork, numbers: Iterator[int]) -> Iterator[tuple[int, CreditedBatch]]:
    """Yield each batch; a worker reads the steps from the store itself, and writes nothing."""
    for number in numbers:
        pieces = read_batch(work.shards, work.plan, number, work.settings.columns)
        yield number, work.credit_batch(number, pieces)


class RayEngine:
    """The workers of a Ray cluster."""

    def __init__(self, pool: RayPool) -> None:
        """Use the cluster that this process is connected to."""
        self._pool = pool

    def map(self, work: BatchWork) -> Iterator[CreditedBatch]:
        """Yield the result of each batch, in the order of the plan.

        Raises:
            EngineError: A worker does not see the store, or a batch was lost with four workers.
        """
        numbers = range(len(work.plan.shards_of_batch))
        return self._pool.in_order(partial(_credit_batches, work), numbers, partial(_shards, work))


def _shards(work: BatchWork, number: int) -> list[Path]:
    return [work.shards[shard].path for shard in work.plan.shards_of_batch[number]]


@contextmanager
def _cluster(address: str | None) -> Generator[RayEngine]:
    with connect(address) as pool:
        yield RayEngine(pool)


def num_workers_for(merge: MergeSettings) -> int:
    """Return how many processes pay off with a merge; several only where it is mostly Python."""
    is_python = merge_named(merge.merge).is_python
    return min(num_processors(), _MOST_WORKERS) if is_python else 1


LOCAL = LocalEngine()
"""The default engine."""


def open_engine(
    name: str, ray_address: str | None = None, num_workers: int | None = None
) -> AbstractContextManager[BatchEngine]:
    """Return an engine that can be used in a `with` block.

    Args:
        name: One of `ENGINES`.
        ray_address: Of the Ray cluster; see `connect`.
        num_workers: Processes of the local engine; by default it is this process alone.

    Raises:
        OptionError: There is no such engine, or it has no use for an address or for workers.
        EngineError: The cluster does not answer.
        MissingDependencyError: The extra `ray` is not installed.
    """
    if name not in ENGINES:
        raise OptionError(must_be_one_of("--engine", ENGINES, name))
    if name == "ray":
        if num_workers is not None:
            raise OptionError(f"processes go with --engine local: got --engine {name}")
        return _cluster(ray_address)
    if ray_address is not None:
        raise OptionError(f"an address goes with --engine ray: got --engine {name}")
    return nullcontext(LocalEngine(num_workers or 1))


def engine_of(
    engine: str | BatchEngine, merge: MergeSettings
) -> AbstractContextManager[BatchEngine]:
    """Return the engine that a text such as local:2 or ray:HOST:PORT names, or what was given.

    Raises:
        OptionError: The text names none.
    """
    if not isinstance(engine, str):
        return nullcontext(engine)
    name, _, rest = engine.partition(":")
    if name != "local":
        return open_engine(name, rest or None)
    return open_engine(name, None, num_processes(engine) or num_workers_for(merge))
