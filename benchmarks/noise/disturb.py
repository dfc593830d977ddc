"""Noise changes a state's text, but not the state.

A visit's text is disturbed once, so a step's `next_state` is still the following step's `state`.
"""

import random
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa


class VisitRandom(random.Random):
    """The random numbers of one visit."""

    def __init__(self, seed: int, trajectory: str, index: int, action_before: str = "") -> None:
        super().__init__(f"{seed} {trajectory} {index}")
        self._of_rollout = f"{seed} {trajectory}"
        self.action_before = action_before

    @cached_property
    def rollout(self) -> random.Random:
        """The same random numbers at each visit of a trajectory, from the first on."""
        return random.Random(self._of_rollout)


Disturb: TypeAlias = Callable[[str, VisitRandom, int], str]
"""Returns a disturbed text, given a state's text, a random generator and the step index."""


def disturb_steps(steps: pa.Table, disturb: Disturb, seed: int) -> pa.Table:
    """Return steps whose state texts are disturbed, each visit in its own way.

    Args:
        steps: Steps with the store's columns, in any order.
        disturb: Returns the disturbed text.
        seed: Determines the noise of a visit, together with trajectory and step index.
    """
    rows = steps.select(
        ["trajectory_id", "step_index", "state", "action", "next_state"]
    ).to_pylist()
    taken = {(row["trajectory_id"], row["step_index"]): row["action"] for row in rows}

    def seen(row: dict[str, Any], index: int, text: str) -> str:
        trajectory = row["trajectory_id"]
        before = taken.get((trajectory, index - 1), "")
        return disturb(text, VisitRandom(seed, trajectory, index, before), index)

    states = [seen(row, row["step_index"], row["state"]) for row in rows]
    following = [seen(row, row["step_index"] + 1, row["next_state"]) for row in rows]
    for name, values in (("state", states), ("next_state", following)):
        position, field = steps.schema.get_field_index(name), steps.schema.field(name)
        steps = steps.set_column(position, field, pa.array(values, pa.string()).cast(field.type))
    return steps


def inserted(text: str, lines: list[str], rng: random.Random) -> str:
    """Return a text with lines at random places between its own."""
    result = text.splitlines()
    for line in lines:
        result.insert(rng.randrange(len(result) + 1), line)
    return "\n".join(result)
