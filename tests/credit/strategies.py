"""Random small logs for hypothesis: loops, dead ends, aliased goals, invalid and costly steps.

Texts share words and states share possible actions, so that some states are alike.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from tests.worlds import START

STATES = ["", "A", "A B", " C\n A", "Ä 🍎 B", "won"]
REWARDS = [0.0, 1.0, -0.1, 10.0, 0.3]
SCORES = [None, None, 0.0, 0.5, -2.0, 10.0]
COSTS = [1.0, 0.5, 2.25]
ADMISSIBLE = [None, [], ["go"], ["look", "go"], ["go", "look", "wait"], ["wait", "dance", "wait"]]
THOUGHTS = [None, "", "a, then b", "It was ä  🍎!", "B? C!", "WON or lost", "Abba"]


@st.composite
def trajectory(
    draw: st.DrawFn, task: str, name: str, lists: Mapping[str, list[str] | None] | None
) -> list[dict[str, Any]]:
    """Draw one trajectory; now and then one that breaks a rule of completeness.

    `lists` are the admissible actions of each state; each step draws its own where there are none.
    """
    length = draw(st.integers(1, 6))
    states = draw(st.lists(st.sampled_from(STATES), min_size=length + 1, max_size=length + 1))
    success = draw(st.booleans())
    start = draw(st.integers(0, 9))
    rows = [
        {
            "task_id": task,
            "trajectory_id": name,
            "step_index": index,
            "state": states[index],
            "next_state": states[index + 1],
            "action": draw(st.sampled_from(["go", "look"])),
            "admissible_actions": lists[states[index]]
            if lists
            else draw(st.sampled_from(ADMISSIBLE)),
            "is_action_valid": draw(st.integers(0, 3)) > 0,
            "reward": draw(st.sampled_from(REWARDS)),
            "score": draw(st.sampled_from(SCORES)),
            "cost": draw(st.sampled_from(COSTS)),
            "terminated": False,
            "truncated": False,
            "success": None,
            "thought": draw(st.sampled_from(THOUGHTS)),
            "logged_at": START + timedelta(seconds=start + index),
        }
        for index in range(length)
    ]
    is_over = success or draw(st.integers(0, 3)) == 0
    rows[-1] |= {"success": success, "terminated": is_over, "truncated": not is_over}
    fault = draw(st.integers(0, 15))
    if fault == 0:
        rows[-1]["success"] = None
    elif fault == 1:
        rows[-1] |= {"terminated": False, "truncated": False}
    elif fault == 2:
        rows[0]["step_index"] = 7
    elif fault == 3:
        rows[-1]["state"] = "somewhere else"
    elif fault == 4:
        rows.append(dict(rows[-1]))
    return rows


@st.composite
def logs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw the steps of one to three groups of one to five trajectories."""
    rows: list[dict[str, Any]] = []
    of_states = st.fixed_dictionaries({state: st.sampled_from(ADMISSIBLE) for state in STATES})
    for group in range(draw(st.integers(1, 3))):
        lists = draw(st.one_of(of_states, st.none()))
        for number in range(draw(st.integers(1, 5))):
            rows += draw(trajectory(f"task-{group}", f"{group}-{number}", lists))
    return rows
