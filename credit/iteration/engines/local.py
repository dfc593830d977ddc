"""Where the batches of an iteration are computed.

An engine computes and the stage writes: whichever process computes a batch, its result comes back
to the one that writes, in the order of the plan. So the bytes do not depend on the engine, and what
was computed twice, because a worker died on the way, is still written once.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from graphcredit.credit.iteration.credit_batch import BatchWork, CreditedBatch
from graphcredit.credit.merging.table import MergeSettings, merge_named
from graphcredit.credit.steps.batches import read_batches
from graphcredit.store.errors import OptionError
from graphcredit.store.processors import num_processors

ENGINES: tuple[str, ...] = ("local", "ray")


class BatchEngine(Protocol):
    """Computes the batches of an iteration."""

    def map(self, work: BatchWork) -> Iterator[CreditedBatch]:
        """Yield the result of each batch, in the order of the plan."""
        ...


class LocalEngine:
    """One batch after the other in this process, while the next one is read."""

    def map(self, work: BatchWork) -> Iterator[CreditedBatch]:
        """Yield the result of each batch, in the order of the plan."""
        batches = read_batches(work.shards, work.plan, work.columns())
        for number, pieces in enumerate(batches):
            yield work.credit_batch(number, pieces)


_MOST_WORKERS = 4
"""By default: each holds a batch, up to a gibibyte of steps."""


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
        ray_address: Of the Ray cluster; see `ray_engine.connect`.
        num_workers: Processes of the local engine; by default it is this process alone.

    Raises:
        OptionError: There is no such engine, or it has no use for an address or for workers.
        EngineError: The cluster does not answer.
        MissingDependencyError: The extra `ray` is not installed.
    """
    if name not in ENGINES:
        raise OptionError(f"--engine must be one of {', '.join(ENGINES)}: got {name!r}")
    if name == "ray":
        if num_workers is not None:
            raise OptionError(f"--workers goes with --engine local: got --engine {name}")
        from graphcredit.credit.iteration.engines.ray import connect

        return connect(ray_address)
    if ray_address is not None:
        raise OptionError(f"--ray-address goes with --engine ray: got --engine {name}")
    if num_workers is not None and num_workers > 1:
        from graphcredit.credit.iteration.engines.processes import ProcessEngine

        return nullcontext(ProcessEngine(num_workers))
    return nullcontext(LOCAL)
