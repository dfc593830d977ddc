"""Compare the advantages of two estimators, or of two iterations, and draw their map."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from dataclasses import dataclass

import altair as alt
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from graphcredit.viewer.queries.compare import CELL, END
from graphcredit.viewer.steps.charts import Chart
from graphcredit.viewer.widgets.colours import NEUTRAL

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionPairs:
    """Actions at states that both iterations saw."""

    key: NDArray[np.int64]
    """[num_pairs] keys from `queries.compare.action_advantages`."""
    left: Floats
    """[num_pairs] mean advantage in one iteration."""
    right: Floats
    """[num_pairs] mean advantage in the other."""

    @classmethod
    def of(cls, left: pa.Table, right: pa.Table) -> "ActionPairs":
        """Match two tables of `queries.compare.action_advantages`."""
        key, in_left, in_right = np.intersect1d(
            left["key"].to_numpy(), right["key"].to_numpy(), return_indices=True
        )
        return cls(
            key=key,
            left=left["advantage"].to_numpy()[in_left],
            right=right["advantage"].to_numpy()[in_right],
        )

    def correlation(self) -> float | None:
        """Return Pearson's correlation; None where an advantage never varies."""
        if len(self.key) < 2 or not (np.ptp(self.left) > 0 and np.ptp(self.right) > 0):
            return None
        return float(np.corrcoef(self.left, self.right)[0, 1])

    def is_flip(self) -> NDArray[np.bool_]:
        """Return [num_pairs] whether the signs are opposite."""
        return self.left * self.right < 0

    def most_different(self, num_rows: int, *, only_flips: bool) -> NDArray[np.int64]:
        """Return the pairs that differ most, in standard deviations of each iteration."""
        x, y = _scaled(self.left), _scaled(self.right)
        difference = np.abs(x - y)
        wanted = np.flatnonzero((difference > 0) & (self.is_flip() | (not only_flips)))
        order = np.lexsort((self.key[wanted], -difference[wanted]))
        return wanted[order[:num_rows]].astype(np.int64)

    def cells(self) -> pa.Table:
        """Return a two-dimensional histogram of the pairs, like `queries.compare.cells`."""
        inside = np.clip([_scaled(self.left), _scaled(self.right)], -END, END)
        (x, y), counts = np.unique(np.rint(inside / CELL), axis=1, return_counts=True)
        return pa.table({"x": x * CELL, "y": y * CELL, "steps": counts})


def _scaled(values: Floats) -> Floats:
    spread = values.std() if len(values) else 0.0
    return values / spread if spread > 0 else values


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
