"""Charts of a trajectory: its course, the credit of a step.

Vega draws text as text, so a log's words are safe in them.
"""

from collections.abc import Sequence
from typing import Any

import altair as alt
import pyarrow as pa

from graphcredit.viewer.queries.truth import MARKS, progress_of, verdict
from graphcredit.viewer.steps.facts import Bar, value_of
from graphcredit.viewer.widgets.colours import NEUTRAL, diverging
from graphcredit.viewer.widgets.text import one_line

Chart = alt.LayerChart | alt.FacetChart

_MOST_MISSING = 1_000
"""Steps between those of a trajectory that have a place on the axis, though they are not there."""


def _steps_of(table: pa.Table) -> list[int]:
    """Return the steps of the axis that all charts of a trajectory share, missing ones too."""
    indices = table["step_index"].to_pylist()
    places = range(indices[0], indices[-1] + 1) if indices else range(0)
    return list(places) if len(places) <= len(indices) + _MOST_MISSING else indices


def _axis_of(table: pa.Table) -> alt.X:
    return alt.X(
        "step:O",
        title=None,
        axis=alt.Axis(labelAngle=0, labelOverlap=True),
        scale=alt.Scale(type="band", domain=_steps_of(table), paddingInner=0.1, paddingOuter=0.05),
    )


_AXIS = alt.Axis(minExtent=48, maxExtent=48)

_DISTANCES = {"seen distance": "goal_distance", "true distance": "oracle_distance"}
"""Name to column."""
_LOOK: dict[str, tuple[str, list[int], str]] = {
    "seen distance": (NEUTRAL, [4, 3], "circle"),
    "true distance": ("#b8860b", [1, 0], "diamond"),
}
"""Name to colour, dashes and shape."""


def course(table: pa.Table, *, column: str, selected: int, limit: float) -> Chart:
    """Return the advantages of a trajectory's steps, one bar a step; a click selects `step`."""
    rows = [
        {
            "step": row["step_index"],
            "value": value_of(table, column, index),
            "colour": diverging(value_of(table, column, index) or 0.0, limit),
            "tint": 0.14 if index == selected else 0.01,
            "action": one_line(row["action"]),
            "reward": row["reward"],
            "mark": MARKS[verdict(value_of(table, column, index), progress_of(row))],
        }
        for index, row in enumerate(_told(table))
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=_axis_of(table),
        tooltip=[
            alt.Tooltip("step:O"),
            alt.Tooltip("action:N"),
            alt.Tooltip("value:Q", title="advantage", format="+.3f"),
            alt.Tooltip("reward:Q"),
            alt.Tooltip("mark:N", title="true progress: ✓ agrees, ✗ conflicts"),
        ],
    )
    # The click target has the full height: a bar near zero is too small to hit. It must not be
    # fully transparent, since transparent marks receive no clicks.
    target = base.mark_rect(color=NEUTRAL, cursor="pointer").encode(
        opacity=alt.Opacity("tint:Q", scale=None)
    )
    click = alt.selection_point(name="click", fields=["step"])
    bar = base.mark_bar(cursor="pointer").encode(
        y=alt.Y("value:Q", title="advantage", axis=_AXIS, scale=_around_zero(1.25 * limit)),
        color=alt.Color("colour:N", scale=None),
    )
    zero = alt.Chart(alt.Data(values=[{}])).mark_rule(color=NEUTRAL).encode(y=alt.datum(0.0))
    mark = base.mark_text(fontSize=12, cursor="pointer").encode(y=alt.value(8), text="mark:N")
    return alt.layer(target.add_params(click), bar, zero, mark).properties(height=150)


def _told(table: pa.Table) -> list[dict[str, Any]]:
    names = ["step_index", "action", "reward", "oracle_distance", "next_oracle_distance"]
    return table.select(names).to_pylist()


def distances(table: pa.Table, *, selected: int) -> Chart:
    """Return the seen and the true distance to the goal before each step of a trajectory.

    The steps are those of `course`. Where no distance is known, the line has a gap.
    """
    indices = table["step_index"].to_pylist()
    known = {
        kind: dict(zip(indices, table[column].to_pylist(), strict=True))
        for kind, column in _DISTANCES.items()
        if table[column].null_count < table.num_rows
    }
    rows = [
        {"step": index, "distance": distances.get(index), "kind": kind}
        for kind, distances in known.items()
        for index in _steps_of(table)
    ]
    kinds = list(known)
    look = [_LOOK[kind] for kind in kinds]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=_axis_of(table),
        y=alt.Y("distance:Q", title="to goal", axis=_AXIS, scale=alt.Scale(zero=True)),
        color=alt.Color(
            "kind:N",
            title=None,
            scale=alt.Scale(domain=kinds, range=[colour for colour, _, _ in look]),
            legend=alt.Legend(orient="top", padding=0, offset=2, symbolDash=[1, 0]),
        ),
        tooltip=[alt.Tooltip("step:O"), alt.Tooltip("kind:N"), alt.Tooltip("distance:Q")],
    )
    here = alt.datum.step == indices[selected]
    line = base.mark_line(interpolate="linear").encode(
        strokeDash=alt.StrokeDash(
            "kind:N",
            legend=None,
            scale=alt.Scale(domain=kinds, range=[dash for _, dash, _ in look]),
        )
    )
    points = base.mark_point(filled=True, opacity=1).encode(
        shape=alt.Shape(
            "kind:N",
            legend=None,
            scale=alt.Scale(domain=kinds, range=[shape for _, _, shape in look]),
        ),
        size=alt.condition(here, alt.value(110), alt.value(30)),
    )
    return alt.layer(line, points).properties(height=130)


def credit(bars: Sequence[Bar], *, limit: float) -> Chart:
    """Return the numbers of a step as bars around zero, advantages thicker than their parts.

    Args:
        bars: The numbers, from top to bottom.
        limit: End of the axis on both sides of zero; the same for all steps, to compare them.
    """
    rows = [
        {
            "name": bar.name,
            "value": bar.value,
            "colour": diverging(bar.value, limit),
            "thick": 16 if bar.is_total else 8,
            "text": f"{bar.value:+.3f}",
        }
        for bar in bars
    ]
    order = [bar.name for bar in bars]
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y(
            "name:N",
            sort=order,
            title=None,
            axis=alt.Axis(labelLimit=220, minExtent=130, labelFlush=False),
        )
    )
    # Room for the numbers at both ends.
    x = alt.X("value:Q", title=None, scale=_around_zero(1.6 * limit))
    bar = base.mark_bar().encode(
        x=x, color=alt.Color("colour:N", scale=None), size=alt.Size("thick:Q", scale=None)
    )
    number = base.encode(x=x, text="text:N")
    below = number.transform_filter(alt.datum.value < 0).mark_text(
        fontSize=11, align="right", dx=-4
    )
    above = number.transform_filter(alt.datum.value >= 0).mark_text(fontSize=11, align="left", dx=4)
    zero = alt.Chart(alt.Data(values=[{}])).mark_rule(color=NEUTRAL).encode(x=alt.datum(0.0))
    return alt.layer(bar, below, above, zero).properties(height=alt.Step(20))


def _around_zero(limit: float) -> alt.Scale:
    end = limit if limit > 0 else 1.0
    return alt.Scale(domain=[-end, end], nice=False)
