"""A row of the table of estimators: all that the house knows of one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.inputs.table import Input
from graphcredit.credit.steps.arrays import Floats
from graphcredit.store.provenance.explained import Explanation


class Assigner(Protocol):
    """Options of an estimator, and its pure function from steps to parts of an advantage."""

    def assign(self, batch: StepBatch) -> dict[str, Floats]:
        """Return `{part: [num_steps] values}`, the parts that the table row names."""
        ...


Balance: TypeAlias = Literal["trajectories", "states", "group"]
"""`trajectories`: over those of a group, all steps of one having one value. `states`: over the
steps that start from one state. `group`: over all steps of a group."""


Matter: TypeAlias = Literal[
    "states", "actions", "success", "rewards", "scores", "costs", "validity", "ends", "lists",
    "texts", "thoughts", "times", "entities",
]  # fmt: skip
"""What a log says that credit may depend on: which states are one, and which actions; who won; the
rewards; the scores of states; the costs; whether an action did something; whether an episode was
cut; the lists of admissible actions; what states say; what the agent thought; when; entities and
their relations."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeValue:
    """A number of an estimator for each node of the graph."""

    column: str
    """Of `nodes.parquet`."""
    of: Callable[[Any, StepBatch], Floats]
    """Returns [num_nodes] the numbers, from the estimator's options."""
    options: tuple[str, ...]
    """Names of the options that it depends on."""


def _no_part(_: Any) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimator:
    """One row of the table."""

    name: str
    """Prefix of its columns."""
    options: type[Assigner]
    """Dataclass of its options; its docstring is the specification."""
    writes: tuple[str, ...]
    """Parts it defines: columns `<name>_<part>`."""
    made_of: tuple[Matter, ...] = ()
    """All that its columns depend on; empty where it does not say."""
    by_wins: Callable[[Any], tuple[str, ...]] = _no_part
    """Returns those parts, of the advantage or it, that tell who won but no returns apart, from the
    estimator's options."""
    balanced: Mapping[str, Balance] = field(default_factory=dict[str, Balance])
    """Those parts whose mean is 0, and over what: the audit checks it."""
    version: int = 1
    """Of its formula. It goes up where the formula comes to give other numbers: what an earlier one
    made is then recognised by its metadata, and made again."""
    inputs: tuple[Input, ...] = ()
    """What it needs besides the steps, rows of `inputs/table.py`."""
    reads: tuple[str, ...] = ()
    """Step columns that it reads itself, from `StepBatch.columns`."""
    where_missing: str = ""
    """What its credit is in groups that lack what an input is built of, for a notice."""
    where_partial: str = ""
    """The same of groups where only some steps lack it."""
    node_values: tuple[NodeValue, ...] = ()
    """The numbers that it gives each node."""
    explains: Callable[[Any], Explanation] | None = None
    """Returns how its credit explains itself, from the estimator's options."""
    paper: str
    """Where it comes from."""

    @property
    def matter(self) -> str:
        """What its columns depend on, in words."""
        return ", ".join(self.made_of) or "what its row does not say"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns it writes."""
        return tuple(f"{self.name}_{part}" for part in self.writes)
