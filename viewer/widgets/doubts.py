"""Reasons not to rely on the credit of a group, as `audit` has them, for beside the numbers."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.store.schema import ROUNDING

_MOST_ALONE = 0.5
"""Share of steps alone in their state that needs no warning, as in `audit`."""

_ALONE = (
    "This task has one complete rollout: there is no other to compare it with, and its credit says "
    "nothing."
)
_NOBODY_WON = "No rollout of this task won: no credit here says what leads to the goal."
_ONLY_RETURNS = (
    "No rollout of this task counts as a success: only credit that reads returns tells them apart."
)
_EQUAL_RETURNS = "All rollouts of this task have the same return: it does not tell them apart."
_NO_OTHERS = (
    "start from a state where no other step of the task does: nothing to compare them with."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Doubt:
    """A reason not to rely on the credit of a group."""

    name: str
    """For a list."""
    sentence: str
    """For a page; it has no text from a log."""


def group_doubts(
    *, size: int, success_rate: float | None, has_equal_returns: bool, alone: float | None
) -> list[Doubt]:
    """Return the reasons not to rely on the credit of a group, the gravest first.

    Args:
        size: Its complete trajectories.
        success_rate: The share of them that won; None if there are none.
        has_equal_returns: Whether all of them have the same return.
        alone: The share of credited steps that start where no other step of the group does.
    """
    if size == 1:
        return [Doubt(name="group of one", sentence=_ALONE)]
    said: list[Doubt] = []
    if success_rate == 0:
        said.append(
            Doubt(name="nobody won", sentence=_NOBODY_WON if has_equal_returns else _ONLY_RETURNS)
        )
    if has_equal_returns:
        said.append(Doubt(name="equal returns", sentence=_EQUAL_RETURNS))
    if alone is not None and alone > _MOST_ALONE:
        sentence = f"{alone:.0%} of the steps here {_NO_OTHERS}"
        said.append(Doubt(name=f"{alone:.0%} alone", sentence=sentence))
    return said


def doubts_of_facts(facts: pa.Table) -> Sequence[str | None]:
    """Return the names of the doubts about each group of `queries.tasks.task_facts`.

    All are None if there is no doubt about any.
    """
    said: list[str] = []
    for row in facts.to_pylist():
        names = [
            doubt.name
            for doubt in group_doubts(
                size=row["num_trajectories"],
                success_rate=row["success_rate"],
                has_equal_returns=bool(row["is_degenerate"]),
                alone=row["singleton_share"],
            )
        ]
        if row["num_credited"] and row["num_credited"] < row["num_trajectories"]:
            names.insert(0, "out of date")
        said.append(", ".join(names))
    return said if any(said) else [None] * len(said)


def doubts_of_steps(steps: pa.Table) -> list[Doubt]:
    """Return the doubts about a group."""
    if not steps.num_rows:
        return []
    ended = steps.group_by("trajectory_id").aggregate([("succeeded", "max"), ("reward", "sum")])
    returns = ended["reward_sum"]
    low, high = pc.min(returns).as_py(), pc.max(returns).as_py()
    visits = steps.group_by("state_id").aggregate([("step_index", "count")])["step_index_count"]
    return group_doubts(
        size=ended.num_rows,
        success_rate=pc.mean(ended["succeeded_max"].cast(pa.int8())).as_py(),
        has_equal_returns=high - low <= ROUNDING * max(abs(low), abs(high)),
        alone=pc.sum(pc.equal(visits, 1)).as_py() / steps.num_rows,
    )
