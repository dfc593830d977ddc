"""All steps of a trajectory as a list, on the Trajectory page."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from graphcredit.viewer.widgets.containers import opened
from graphcredit.viewer.queries.truth import seen_change, true_change
from graphcredit.viewer.steps import facts as step_facts
from graphcredit.viewer.widgets.note_words import NoteWords
from graphcredit.viewer.widgets.tables import choose_row, signed_number


def show_all_steps(
    table: pa.Table,
    step: int,
    noted: NoteWords,
    *,
    go_to: Callable[..., None],
) -> None:
    """List the steps; a click on a row shows it."""
    inside = opened("All steps", key="all_steps")
    if inside is None:
        return
    names = step_facts.estimators(table)
    rows = table.to_pylist()
    columns: dict[str, Any] = {
        "step": table["step_index"],
        "action": table["action"],
        "valid": table["is_action_valid"],
        "reward": table["reward"],
        **({"score": table["score"]} if step_facts.has_scores(table) else {}),
        **{f"{name} advantage": table[f"{name}_advantage"] for name in names},
        "seen distance": pa.array([seen_change(row) for row in rows], pa.string()),
        "true distance": pa.array([true_change(row) for row in rows], pa.string()),
    }
    if noted.keys() - {None}:
        words = [noted.get(index) for index in table["step_index"].to_pylist()]
        columns["note"] = pa.array(words, pa.string())
    shown = pa.table(columns)
    with inside:
        row = choose_row(
            shown,
            shown.column_names,
            key=f"all_steps_{table['trajectory_id'][step].as_py()}_{step}",
            title="All steps",
            config={f"{name} advantage": signed_number() for name in names},
        )
    if row is not None:
        go_to(step=row)
