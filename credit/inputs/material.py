"""The material of inputs: a batch, and what a source provides for its iteration."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from graphcredit.credit.merging.merger import Merged, Merger
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.steps.batches import Plan
from graphcredit.credit.steps.complete import Steps
from graphcredit.credit.steps.nodes import Nodes
from graphcredit.store.layout import Shard
from graphcredit.store.parquet.numbers import arrow_of
from graphcredit.store.provenance.sources import Sources

Fit: TypeAlias = Callable[[Sequence[Shard], Plan], Merger]
"""Returns the merger that is fitted to an iteration: of its step shards and batches."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Material:
    """A batch whose inputs are yet to be built."""

    table: pa.Table
    """The rows that the steps came from, with the columns that the inputs read."""
    steps: Steps
    """Complete trajectories."""
    nodes: Nodes
    """Nodes of their states."""
    merged: Merged
    """What the merge made, with the steps of earlier iterations where the graph has them."""
    number: int = 0
    """Of the batch in its iteration."""
    provided: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Input to what its provider gives for the iteration."""

    def texts(self) -> pa.Array:
        """Return [num_nodes] what the text of each state says; null at a goal.

        It is the first text seen there. Where texts became one state, it is without what the merge
        took for noise.
        """
        text, is_goal = self.nodes.text_of_node, self.nodes.text_of_node < 0
        if self.merged.texts is None or (self.nodes.num_texts <= 1).all():
            return self.steps.state_texts.take(arrow_of(text, is_null=is_goal))
        return pa.array(np.array(self.merged.texts(), object), pa.string(), mask=is_goal)


@dataclass(frozen=True, kw_only=True, slots=True)
class IterationSteps:
    """The step shards of an iteration, cut into batches."""

    number: int
    shards: Sequence[Shard]
    plan: Plan
    merger: Merger
    """Has learned from it."""


class InputProvider(Protocol):
    """Provides what an input is made of besides the steps of a batch, for the iterations of a run.

    Iterations are entered in ascending order, one at a time.
    """

    def enter(self, iteration: IterationSteps | None) -> Any:
        """Return what is provided for an iteration, for any process; None: its steps are in memory.

        `Input.build` finds it in `Material.provided`.
        """
        ...

    def leave(self) -> None:
        """Note that the iteration entered last has been credited."""

    def finish(self) -> None:
        """Note that nothing is left to credit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Constant(InputProvider):
    """Provides one value for all iterations."""

    value: Any

    def enter(self, iteration: IterationSteps | None) -> Any:
        """Return the value."""
        del iteration
        return self.value


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredRun:
    """A run of a store whose iterations are to be credited."""

    run_id: str
    sources: Sources
    """As they were before anything was read."""
    merge: MergeSettings
    fit: Fit
    batch_rows: int
    """Rows that are processed together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Opening:
    """All that the provider of an input may be opened with, for one run."""

    options: Mapping[str, Any]
    """Estimator to its options."""
    stored: StoredRun | None = None
    """None where steps are in memory."""
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Input to what the caller gives in place of a store."""
