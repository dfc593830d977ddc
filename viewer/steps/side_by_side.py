"""Two rollouts of one task side by side: aligned on states that both visited, and their fork."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

Step: TypeAlias = Mapping[str, Any]
"""A row of `queries.graphs.task_steps`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """A row of two aligned rollouts; None where one of them has no step."""

    left: Step | None
    right: Step | None
    is_shared: bool
    """Whether both steps start from the same state."""

    @property
    def is_parting(self) -> bool:
        """Whether both are in one state, and what they do leads to different ones."""
        return (
            self.left is not None
            and self.right is not None
            and self.is_shared
            and self.left["next_state_id"] != self.right["next_state_id"]
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Winner:
    """The rollout that won from a state with the fewest further steps."""

    trajectory_id: str
    step_index: int
    """Its step from that state."""
    from_step: int
    """The step of the other rollout in that state: the one that was asked for, or one before it."""


def steps_of(steps: pa.Table, trajectory_id: str) -> list[Step]:
    """Return the steps of a trajectory in order."""
    return steps.filter(pc.field("trajectory_id") == trajectory_id).to_pylist()


def aligned(
    left: Sequence[Step], right: Sequence[Step], meeting: tuple[int, int] | None = None
) -> list[Pair]:
    """Return two rollouts in rows, steps from the same state side by side as far as they can be.

    Args:
        left: A rollout.
        right: The other one.
        meeting: A step of each, from one state, that stand in one row whatever else has to part.
    """
    if meeting is not None:
        one, other = meeting
        met = Pair(left=left[one], right=right[other], is_shared=True)
        before = aligned(left[:one], right[:other])
        return [*before, met, *aligned(left[one + 1 :], right[other + 1 :])]
    states = [[step["state_id"] for step in side] for side in (left, right)]
    pairs: list[Pair] = []
    for tag, a, b, c, d in SequenceMatcher(None, *states, autojunk=False).get_opcodes():
        pairs += (
            Pair(left=one, right=other, is_shared=tag == "equal")
            for one, other in zip_longest(left[a:b], right[c:d])
        )
    return pairs


def fork_of(pairs: Sequence[Pair]) -> int | None:
    """Return the row after which the two have no state in common; None if they never part.

    They part where they last stood in one state and went to different ones.
    """
    shared = [row for row, pair in enumerate(pairs) if pair.is_shared]
    return shared[-1] if shared and pairs[shared[-1]].is_parting else None


def winners(steps: pa.Table, trajectory_id: str) -> pa.Table:
    """Return the steps of the other rollouts of a task that won."""
    return steps.filter(pc.field("succeeded") & (pc.field("trajectory_id") != trajectory_id))


def nearest_winner(steps: pa.Table, trajectory_id: str, step_index: int) -> Winner | None:
    """Return who won from a step's state soonest; if nobody did, from the last state before."""
    own = steps_of(steps, trajectory_id)
    others = winners(steps, trajectory_id)
    lengths: dict[str, int] = {}
    for name in others["trajectory_id"].to_pylist():
        lengths[name] = lengths.get(name, 0) + 1
    soonest: dict[int, tuple[int, str, int]] = {}
    names = ("state_id", "trajectory_id", "step_index")
    for state, name, index in zip(*(others[column].to_pylist() for column in names), strict=True):
        way = (lengths[name] - index, name, index)
        soonest[state] = min(soonest.get(state, way), way)
    for step in reversed(own[: step_index + 1]):
        if step["state_id"] in soonest:
            _, name, index = soonest[step["state_id"]]
            return Winner(trajectory_id=name, step_index=index, from_step=step["step_index"])
    return None
