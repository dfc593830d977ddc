"""Charts of a trajectory: its course, the credit of a step.

Vega draws text as text, so a log's words are safe in them.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from graphcredit.store.log_text import one_line
from graphcredit.viewer.steps.facts import Bar, value_of
from graphcredit.viewer.widgets.charts import Spec, field
from graphcredit.viewer.widgets.colours import NEUTRAL, diverging

_MOST_MISSING = 1_000
"""Steps between those of a trajectory that have a place on the axis, though they are not there."""


def _steps_of(table: pa.Table) -> list[int]:
    """Return the steps of the axis that all charts of a trajectory share, missing ones too."""
    indices = table["step_index"].to_pylist()
    places = range(indices[0], indices[-1] + 1) if indices else range(0)
    return list(places) if len(places) <= len(indices) + _MOST_MISSING else indices


def _axis_of(table: pa.Table) -> Spec:
    scale = {"type": "band", "domain": _steps_of(table), "paddingInner": 0.1, "paddingOuter": 0.05}
    axis = {"labelAngle": 0, "labelOverlap": True}
    return field("step:O", title=None, axis=axis, scale=scale)


_AXIS = {"minExtent": 48, "maxExtent": 48}

_DISTANCES = {"seen distance": "goal_distance", "true distance": "oracle_distance"}
"""Name to column."""
_LOOK: dict[str, tuple[str, list[int], str]] = {
    "seen distance": (NEUTRAL, [4, 3], "circle"),
    "true distance": ("#b8860b", [1, 0], "diamond"),
}
"""Name to colour, dashes and shape."""


def course(table: pa.Table, *, column: str, selected: int, limit: float) -> Spec:
    """Return the advantages of a trajectory's steps, one bar a step; a click selects `step`."""
    rows = [
        {
            "step": row["step_index"],
            "value": value_of(table, column, index),
            "colour": diverging(value_of(table, column, index) or 0.0, limit),
            "tint": 0.14 if index == selected else 0.01,
            "action": one_line(row["action"]),
            "reward": row["reward"],
        }
        for index, row in enumerate(table.select(["step_index", "action", "reward"]).to_pylist())
    ]
    number = {"axis": _AXIS, "scale": _around_zero(1.25 * limit)}
    shared = {
        "x": _axis_of(table),
        "tooltip": [
            *(field("step:O"), field("action:N"), field("reward:Q")),
            field("value:Q", title="advantage", format="+.3f"),
        ],
    }
    # The click target has the full height: a bar near zero is too small to hit. It must not be
    # fully transparent, since transparent marks receive no clicks.
    tint = {"opacity": field("tint:Q", scale=None)}
    click = {"name": "click", "select": {"type": "point", "fields": ["step"]}}
    target = _layer("rect", shared | tint, color=NEUTRAL, cursor="pointer") | {"params": [click]}
    bar = {
        "y": field("value:Q", title="advantage", **number),
        "color": field("colour:N", scale=None),
    }
    layers = [target, _layer("bar", shared | bar, cursor="pointer"), _zero("y")]
    return {"data": {"values": rows}, "layer": layers, "height": 150}


def _layer(mark: str, encoding: Spec, **look: Any) -> Spec:
    return {"mark": {"type": mark, **look}, "encoding": encoding}


def distances(table: pa.Table, *, selected: int) -> Spec:
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
    legend = {"orient": "top", "padding": 0, "offset": 2, "symbolDash": [1, 0]}
    colour, dash, shape = (
        {"domain": [*known], "range": [_LOOK[kind][part] for kind in known]} for part in range(3)
    )
    shared = {
        "x": _axis_of(table),
        "y": field("distance:Q", title="to goal", axis=_AXIS, scale={"zero": True}),
        "color": field("kind:N", title=None, scale=colour, legend=legend),
        "tooltip": [field("step:O"), field("kind:N"), field("distance:Q")],
    }
    line = {"strokeDash": field("kind:N", legend=None, scale=dash)}
    here = {"test": f"datum.step === {indices[selected]}", "value": 110}
    point = {
        "shape": field("kind:N", legend=None, scale=shape),
        "size": {"condition": here, "value": 30},
    }
    points = _layer("point", shared | point, filled=True, opacity=1)
    layers = [_layer("line", shared | line), points]
    return {"data": {"values": rows}, "layer": layers, "height": 130}


def credit(bars: Sequence[Bar], *, limit: float) -> Spec:
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
    axis = {"labelLimit": 220, "minExtent": 130, "labelFlush": False}
    shared = {
        "y": field("name:N", sort=[bar.name for bar in bars], title=None, axis=axis),
        # Room for the numbers at both ends.
        "x": field("value:Q", title=None, scale=_around_zero(1.6 * limit)),
    }
    look = {"color": field("colour:N", scale=None), "size": field("thick:Q", scale=None)}
    number = shared | {"text": field("text:N")}
    below = _layer("text", number, fontSize=11, align="right", dx=-4)
    above = _layer("text", number, fontSize=11, align="left", dx=4)
    layers = [
        _layer("bar", shared | look),
        below | {"transform": [{"filter": "datum.value < 0"}]},
        above | {"transform": [{"filter": "datum.value >= 0"}]},
        _zero("x"),
    ]
    return {"data": {"values": rows}, "layer": layers, "height": {"step": 20}}


def _zero(axis: str) -> Spec:
    """Return a line at 0."""
    line = _layer("rule", {axis: {"datum": 0.0}}, color=NEUTRAL)
    return line | {"data": {"values": [{}]}}


def _around_zero(limit: float) -> Spec:
    end = limit if limit > 0 else 1.0
    return {"domain": [-end, end], "nice": False}
