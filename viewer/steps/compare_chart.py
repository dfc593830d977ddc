"""A heat map of steps by two advantages."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

import altair as alt
import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.viewer.queries.compare import CELL, END
from graphcredit.viewer.steps.charts import Chart
from graphcredit.viewer.widgets.colours import NEUTRAL

_FEW_TO_MANY = ("#7386d3", "#229089", "#b87d00")
"""Violet, green, yellow: visible on light and dark backgrounds."""


def agreement_map(cells: pa.Table, *, left: str, right: str, unit: str) -> Chart:
    """Return the map; off the two diagonal quarters, the signs are opposite.

    Args:
        cells: `x, y, steps`, from `queries.compare.cells`.
        left: Name of the horizontal axis.
        right: Name of the vertical axis.
        unit: Name of the counted things, such as steps.
    """
    half = CELL / 2
    # A table is sent as it is; Altair would check thousands of records one by one.
    for axis in ("x", "y"):
        cells = cells.append_column(f"{axis}0", pc.subtract(cells[axis], half))
        cells = cells.append_column(f"{axis}1", pc.add(cells[axis], half))
    scale = alt.Scale(domain=[-END - half, END + half], nice=False)
    cell = (
        alt.Chart(cells)
        .mark_rect()
        .encode(
            x=alt.X(
                "x0:Q",
                title=f"{left}, in standard deviations (beyond ±{END:g}: last cells)",
                scale=scale,
            ),
            x2="x1:Q",
            y=alt.Y("y0:Q", title=right, scale=scale),
            y2="y1:Q",
            color=alt.Color("steps:Q", title=unit, scale=alt.Scale(type="log", range=_FEW_TO_MANY)),
            tooltip=[
                alt.Tooltip("x:Q", title=left, format="+.2f"),
                alt.Tooltip("y:Q", title=right, format="+.2f"),
                alt.Tooltip("steps:Q", title=unit),
            ],
        )
    )
    line = alt.Chart(alt.Data(values=[{}])).mark_rule(color=NEUTRAL)
    zeros = (line.encode(x=alt.datum(0.0)), line.encode(y=alt.datum(0.0)))
    return alt.layer(cell, *zeros).properties(height=360)
