"""Explain a step's advantage in a sentence or two."""

import pyarrow as pa

from graphcredit.viewer.steps.facts import outcome, value_of


def reason(table: pa.Table, step: int, estimator: str, actions: pa.Table | None) -> str:
    """Return an explanation of an estimator's advantage of a step.

    Args:
        table: The steps of a trajectory, with their credit.
        step: Row of the table.
        estimator: The estimator.
        actions: From `queries.trajectory.actions_here`; None if the step has no state.
    """
    total = value_of(table, f"{estimator}_advantage", step)
    if total is None:
        return f"{estimator} gives this step no credit."
    parts = [
        f"{value:+.2f} for {of_what}"
        for part, of_what in (
            ("episode_advantage", _of_trajectory(table)),
            ("step_advantage", _of_step(table, step)),
        )
        if (value := value_of(table, f"{estimator}_{part}", step)) is not None
    ]
    words = f"{estimator} gives {total:+.2f}" + (f": {', and '.join(parts)}" if parts else "")
    return f"{words}. {_among(actions, table['action'][step].as_py())}".rstrip()


def _of_trajectory(table: pa.Table) -> str:
    ended = f"the whole trajectory, which {outcome(table['success'][-1].as_py())}"
    rate, size = table["group_success_rate"][0].as_py(), table["group_size"][0].as_py()
    return ended if rate is None else f"{ended} where {rate * size:.0f} of {size} succeeded"


def _of_step(table: pa.Table, step: int) -> str:
    """Return the effect of the step on the distance to the goal, as the group observed it."""
    before, after = (table[name][step].as_py() for name in ("goal_distance", "next_goal_distance"))
    if before is None and after is None:
        return "the step, whose group saw no way from here to the goal"
    if after is None:
        return "the step, which led to a state where the group saw no way to the goal"
    if before is None:
        return f"the step, which found a way to the goal, {after:g} long"
    if after == before:
        return f"the step, which left the goal {after:g} away"
    way = "nearer" if after < before else "farther away"
    return f"the step, which brought the goal {way}, from {before:g} to {after:g}"


def _among(actions: pa.Table | None, action: str) -> str:
    """Return the action's rank among those that the group took in the same state."""
    if actions is None:
        return ""
    if sum(actions["num_steps"].to_pylist()) == 1:
        return "No other step of the group starts from this state, so it cannot be compared."
    means = {
        row["action"]: row["advantage"]
        for row in actions.to_pylist()
        if row["advantage"] is not None
    }
    if len(means) == 1:
        return "The group took no other action in this state."
    rank = 1 + sum(mean > means[action] for mean in means.values())
    return (
        f"By mean advantage it is number {rank} of the {len(means)} actions that the group took in "
        "this state."
    )
