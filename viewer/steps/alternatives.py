"""Tell what a group did in the state of a step: actions, where they led, what became of them."""

from collections.abc import Sequence
from typing import Any

from graphcredit.store.plural import counted
from graphcredit.store.text_diff import compare
from graphcredit.viewer.queries.outcomes import succeeded
from graphcredit.viewer.widgets.text import code_label


def summary(outcomes: Sequence[dict[str, Any]], action: str) -> list[str]:
    """Return sentences about the actions in a state and the place of one of them."""
    num_steps = sum(row["num_steps"] for row in outcomes)
    if num_steps == 1:
        return ["No other step of the group starts from this state."]
    actions = {row["action"] for row in outcomes}
    targets = {row["next_state_id"] for row in outcomes}
    num_rollouts = outcomes[0]["num_here"]
    again = "; some came back to it" if num_rollouts < num_steps else ""
    said = [
        f"{counted(num_rollouts, 'rollout')} did {counted(num_steps, 'step')} from this state"
        f"{again}: {counted(len(actions), 'different action')}, which led to "
        f"{counted(len(targets), 'different state')}."
    ]
    several = sum(row["action"] == action for row in outcomes)
    if several > 1:
        said.append(
            f"This step's action led to {several} different states from here: the state does not "
            "tell everything, or the environment is random."
        )
    said += _rank(outcomes, action)
    return said


def label_of(row: dict[str, Any], *, is_here: bool) -> str:
    """Return Markdown of one line about an action and where it led."""
    target = "the goal" if row["is_goal"] else f"state {row['next_state_id']}"
    credit = "" if row["advantage"] is None else f", mean {row['advantage']:+.2f}"
    return (
        f"{'▶ ' if is_here else ''}{code_label(row['action'])} → {target}: "
        f"{counted(row['num_trajectories'], 'rollout')} in {counted(row['num_steps'], 'step')}"
        f"{succeeded(row['num_succeeded'])}{credit}"
    )


def difference(own: str | None, other: str | None) -> str:
    """Return how the outcome of another step differs from that of the step that is shown."""
    if own == other:
        return "The text of the outcome is the same."
    return compare(own or "", other or "").lines or "The outcomes differ only in spaces."


def _rank(outcomes: Sequence[dict[str, Any]], action: str) -> list[str]:
    """Return the rank of an action by its mean advantage, if there is one."""
    totals: dict[str, tuple[float, int]] = {}
    for row in outcomes:
        if row["advantage"] is not None:
            total, count = totals.get(row["action"], (0.0, 0))
            steps = row["num_steps"]
            totals[row["action"]] = total + row["advantage"] * steps, count + steps
    means = {name: total / count for name, (total, count) in totals.items()}
    if len(means) < 2 or action not in means:
        return []
    rank = 1 + sum(mean > means[action] for mean in means.values())
    return [
        f"By mean advantage, this step's action is number {rank} of the {len(means)} that the "
        "group took here."
    ]
