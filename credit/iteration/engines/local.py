"""Where the batches of an iteration are computed.

An engine computes and the stage writes: whichever process computes a batch, its result comes back
to the one that writes, in the order of the plan. So the bytes do not depend on the engine, and what
was computed twice, because a worker died on the way, is still written once.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from graphcredit.credit.iteration.credit_batch import BatchWork, CreditedBatch
from graphcredit.credit.steps.batches import read_batches
from graphcredit.store.errors import OptionError

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


LOCAL = LocalEngine()
"""The default engine."""


def open_engine(name: str, ray_address: str | None = None) -> AbstractContextManager[BatchEngine]:
    """Return an engine that can be used in a `with` block.

    Args:
        name: One of `ENGINES`.
        ray_address: Of the Ray cluster; see `ray_engine.connect`.

    Raises:
        OptionError: There is no such engine, or it has no use for an address.
        EngineError: The cluster does not answer.
        MissingDependencyError: The extra `ray` is not installed.
    """
    if name not in ENGINES:
        raise OptionError(f"--engine must be one of {', '.join(ENGINES)}: got {name!r}")
    if name == "ray":
        from graphcredit.credit.iteration.engines.ray import connect

        return connect(ray_address)
    if ray_address is not None:
        raise OptionError(f"--ray-address goes with --engine ray: got --engine {name}")
    return nullcontext(LOCAL)
