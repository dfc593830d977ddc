"""Why a step has its advantage: each fact of the sentence, for each case."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from graphcredit.viewer.steps.reasons import reason

STEP: dict[str, Any] = {
    "action": "go",
    "success": False,
    "group_success_rate": 0.625,
    "group_size": 8,
    "goal_distance": 4.0,
    "next_goal_distance": 3.0,
    "graphgpo_episode_advantage": -1.0,
    "graphgpo_step_advantage": 1.5,
    "graphgpo_advantage": 0.5,
    "grpo_episode_advantage": -1.0,
    "grpo_advantage": -1.0,
    "foreign_advantage": 2.0,
}


def why(
    actions: Sequence[tuple[str, int, float | None]] | None = None,
    name: str = "graphgpo",
    **changes: Any,
) -> str:
    table = pa.Table.from_pylist([STEP | changes])
    if actions is None:
        return reason(table, 0, name, None)
    columns = ("action", "num_steps", "advantage")
    rows = [dict(zip(columns, row, strict=True)) for row in actions]
    return reason(table, 0, name, pa.Table.from_pylist(rows))


def test_an_advantage_is_told_by_its_parts():
    assert why() == (
        "graphgpo gives +0.50: -1.00 for the whole trajectory, which failed where 5 of 8 "
        "succeeded, and +1.50 for the step, which brought the goal nearer, from 4 to 3."
    )
    assert why(name="grpo") == (
        "grpo gives -1.00: -1.00 for the whole trajectory, which failed where 5 of 8 succeeded."
    )
    assert why(name="foreign") == "foreign gives +2.00."
    assert why(graphgpo_advantage=None) == "graphgpo gives this step no credit."


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (3.0, 4.0, "which brought the goal farther away, from 3 to 4."),
        (2.5, 2.5, "which left the goal 2.5 away."),
        (2.0, None, "which led to a state where the group saw no way to the goal."),
        (None, 2.0, "which found a way to the goal, 2 long."),
        (None, None, "whose group saw no way from here to the goal."),
    ],
)
def test_what_the_step_did_is_told_by_distance(
    before: float | None, after: float | None, words: str
):
    assert why(goal_distance=before, next_goal_distance=after).endswith(words)


def test_an_action_is_ranked_among_those_of_its_state():
    actions = [("stay", 1, 0.2), ("go", 2, 0.0), ("run", 1, None)]
    assert why(actions).endswith(
        "it is number 2 of the 2 actions that the group took in this state."
    )
    assert why([("go", 2, 0.3)]).endswith("The group took no other action in this state.")
    assert why([("go", 1, 0.5)]).endswith("so it cannot be compared.")
