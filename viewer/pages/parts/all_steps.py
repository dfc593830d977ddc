"""All steps of a trajectory as a list, on the Trajectory page."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from graphcredit.viewer.steps import facts
from graphcredit.viewer.steps.shown import Shown
from graphcredit.viewer.widgets.containers import opened
from graphcredit.viewer.widgets.tables import choose_row, signed_number


def show_all_steps(shown: Shown, *, go_to: Callable[[int], None]) -> None:
    """List the steps; a chosen one is shown."""
    inside = opened("All steps", key="all_steps")
    if inside is None:
        return
    table = shown.table
    names = facts.estimators(table)
    rows = table.to_pylist()
    columns: dict[str, Any] = {
        "step": table["step_index"],
        "action": table["action"],
        "valid": table["is_action_valid"],
        "reward": table["reward"],
        "score": table["score"],
        **{f"{name} advantage": table[f"{name}_advantage"] for name in names},
        "seen distance": pa.array([facts.seen_change(row) for row in rows], pa.string()),
        "true distance": pa.array([facts.true_change(row) for row in rows], pa.string()),
    }
    with inside:
        row = choose_row(
            pa.table(columns),
            [*columns],
            key=f"all_steps_{shown.name}_{shown.row}",
            title="All steps",
            config={f"{name} advantage": signed_number() for name in names},
        )
    if row is not None:
        go_to(row)
