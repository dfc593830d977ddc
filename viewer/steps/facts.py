"""Numbers and words about a trajectory's steps, for the page and the exported file."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.store.schema import (
    ESTIMATOR_PARTS,
    LARGEST_NUMBER,
    SMALLEST_COST,
    STEP_COLUMNS,
    split_estimator_column,
)
from graphcredit.viewer.queries.estimators import most_telling_first
from graphcredit.viewer.queries.outcomes import outcome
from graphcredit.viewer.widgets.text import label

PART_NAMES: dict[str, str] = {
    "advantage": "",
    "episode_advantage": " · episode",
    "step_advantage": " · step",
    "q": " · q",
    "value": " · value",
    "outcome": " · outcome",
    "baseline": " · baseline",
    "progress": " · progress",
}
"""Part to the suffix of the estimator's name; the trainer uses the plain advantage."""

_VALUES = [
    *("state", "next_state", "action", "is_action_valid", "terminated", "truncated"),
    *("reward", "cost"),
]
_OF_THE_RULE = ["step_index", "state", "next_state", "terminated", "truncated", "success"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """One number of one step, drawn around zero."""

    name: str
    """Estimator and part."""
    value: float
    is_total: bool
    """Whether it is the advantage for the trainer, and not one of its parts."""

    @property
    def part(self) -> str:
        """The name of the part alone; empty for the advantage."""
        return "" if self.is_total else self.name.rpartition(" · ")[2]


def estimators(table: pa.Table) -> list[str]:
    """Return the estimators that gave some row of a table an advantage, the most telling first."""
    splits = (
        split for name in table.column_names if (split := split_estimator_column(name)) is not None
    )
    return most_telling_first(
        estimator
        for estimator, part in splits
        if part == "advantage" and (c := table[f"{estimator}_{part}"]).null_count < len(c)
    )


def shown_values(row: Mapping[str, Any]) -> list[str]:
    """Return the words for the values of a step that the schema says how to show."""
    return [
        column.shown.format(label(value) if isinstance(value, str) else number(value))
        for column in STEP_COLUMNS
        if column.shown and ((value := row[column.name]) is not None or not column.nullable)
    ]


def has_values(table: pa.Table) -> bool:
    """Return whether every step has the values that credit needs, as a complete trajectory does."""
    return all(
        None not in step.values()
        and abs(step["reward"]) <= LARGEST_NUMBER
        and SMALLEST_COST <= step["cost"] <= LARGEST_NUMBER
        for step in table.select(_VALUES).to_pylist()
    )


def has_any(table: pa.Table, *columns: str) -> bool:
    """Return whether some step has a value in one of some columns."""
    return any(table[name].null_count < table.num_rows for name in columns)


def has_all_steps(table: pa.Table) -> bool:
    """Return whether the steps are one chain from first to last, as in a complete trajectory."""
    steps = table.select(_OF_THE_RULE).to_pylist()
    is_last = [False] * (len(steps) - 1) + [True]
    return (
        [step["step_index"] for step in steps] == list(range(len(steps)))
        and all(step["next_state"] == after["state"] for step, after in pairwise(steps))
        and [step["terminated"] or step["truncated"] for step in steps] == is_last
        and all(step["success"] is None for step in steps[:-1])
    )


def bars(table: pa.Table, step: int, names: list[str]) -> list[Bar]:
    """Return the numbers of a step, each estimator's advantage before its parts."""
    drawn: list[Bar] = []
    for estimator in names:
        for part, suffix in PART_NAMES.items():
            value = value_of(table, f"{estimator}_{part}", step)
            if value is not None:
                bar = Bar(name=estimator + suffix, value=value, is_total=part == "advantage")
                drawn.append(bar)
    return drawn


def with_parts(drawn: Sequence[Bar]) -> list[tuple[Bar, list[Bar]]]:
    """Return each advantage of `bars` with its parts; a part that is all of it is left out."""
    grouped: list[tuple[Bar, list[Bar]]] = []
    for bar in drawn:
        if bar.is_total:
            grouped.append((bar, []))
        elif bar.value != grouped[-1][0].value:
            grouped[-1][1].append(bar)
    return grouped


def value_of(table: pa.Table, name: str, step: int) -> float | None:
    """Return a cell; None if it is null or the table has no such column."""
    return table[name][step].as_py() if name in table.column_names else None


def largest(table: pa.Table, names: list[str]) -> float:
    """Return the largest absolute advantage of some estimators, parts included; 0 if none."""
    columns = [f"{name}_{part}" for name in names for part in ESTIMATOR_PARTS if part in PART_NAMES]
    values = (v for c in columns if c in table.column_names for v in table[c].to_pylist())
    return max((abs(value) for value in values if value is not None), default=0.0)


def telling(group: pa.Table, trajectory_id: str) -> list[int]:
    """Return the steps of a trajectory that may head a list, see `queries.telling`."""
    rows = group.filter((pc.field("trajectory_id") == trajectory_id) & pc.field("is_telling"))
    return rows["step_index"].to_pylist()


def extreme_steps(
    table: pa.Table, estimator: str, rows: Sequence[int]
) -> list[tuple[str, int, float]]:
    """Return the steps with the most and the least advantage: what they are, step and advantage.

    Empty if all are about equal. The most of a trajectory that gets only blame is no credit.
    """
    values = table[f"{estimator}_advantage"].to_pylist()
    known = [value for value in values if value is not None]
    ranked = sorted((row for row in rows if values[row] is not None), key=values.__getitem__)
    if not ranked or max(known) - min(known) < 0.005:
        return []
    least, most = ranked[0], ranked[-1]
    found = [
        ("Most credit" if values[most] > 0 else "Least blame", most, values[most]),
        ("Most blame" if values[least] < 0 else "Least credit", least, values[least]),
    ]
    return [each for each in found if most != least or each[0].startswith("Most")]


def total(table: pa.Table) -> str:
    """Return the return of a trajectory as text; null rewards are ignored."""
    return f"{sum(reward or 0.0 for reward in table['reward'].to_pylist()):g}"


def number(value: float | None) -> str:
    """Return a number as text; an unchecked log may have null."""
    return "null" if value is None else f"{value:g}"


def ending(table: pa.Table, *, is_graded: bool = False) -> str:
    """Return how a trajectory ended; one that was cut off did not lose by its last step."""
    ends = table.select(["terminated", "truncated", "success"])
    last = ends.slice(table.num_rows - 1).to_pylist()[0]
    is_ended = bool(last["terminated"] or last["truncated"])
    word = outcome(last["success"], is_graded=is_graded, is_ended=is_ended)
    return f"{word}, cut off" if last["truncated"] else word


def seen_change(step: Mapping[str, Any]) -> str | None:
    """Return the seen distance before and after a step as text; None if there never was a way.

    It is that of the group's own graph, which is all that estimators know.
    """
    return _change(step["goal_distance"], step["next_goal_distance"], unknown="no way")


def true_change(step: Mapping[str, Any]) -> str | None:
    """Return the environment's distance before and after a step as text; None if it has none."""
    return _change(step["oracle_distance"], step["next_oracle_distance"], unknown="unknown")


def _change(before: float | None, after: float | None, *, unknown: str) -> str | None:
    if before is None and after is None:
        return None
    first, second = (unknown if value is None else f"{value:g}" for value in (before, after))
    return f"{first} → {second}"
