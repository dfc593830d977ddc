"""Tables of the cells that are whole, and how many are missing."""

from typing import Any

import polars as pl

from experiments.language_model.cells import ARMS, Cell, Plan
from experiments.markdown import frame, ranged
from experiments.means import students_t


def missing(plan: Plan, rows: pl.DataFrame) -> list[Cell]:
    """Return the cells without a row, in the order of the plan."""
    keys = [cell.key for cell in plan.cells()]
    done = rows.select(*keys[0]).to_dicts() if len(rows) else []
    return [cell for cell in plan.cells() if cell.key not in done]


def tables(plan: Plan, rows: pl.DataFrame) -> str:
    """Return how many cells are missing, and for each length the arms and their differences.

    Differences are of whole pairs.
    """
    lacking, total = len(missing(plan, rows)), len(plan.cells())
    texts = [f"{lacking} of {total} cells are missing{': nothing is claimed' * bool(lacking)}\n"]
    for (length,), own in rows.group_by("length", maintain_order=True) if len(rows) else ():
        ends = own.group_by("arm", maintain_order=True).agg(
            pl.len().alias("cells"), pl.col("first", "end", "during").mean()
        )
        texts.append(f"At most {length} steps:\n\n{frame(ends)}")
        whole = own.filter(pl.col("arm").n_unique().over("seed") == len(ARMS)).sort("seed")
        if len(whole):
            texts.append(frame(_differences(whole)))
    return "\n".join(texts)


def _differences(whole: pl.DataFrame) -> pl.DataFrame:
    """Return the differences of the first arm to each of the others, at the end."""
    ends = {
        str(arm): own["end"].to_numpy()
        for (arm,), own in whole.group_by("arm", maintain_order=True)
    }
    rows: list[dict[str, Any]] = []
    for other in ARMS[1:]:
        gap = ends[ARMS[0]] - ends[other]
        shown = ranged(students_t(gap), 3) if len(gap) > 1 else f"{gap[0]:.3f}"
        rows.append({"difference": f"{ARMS[0]} - {other}", "pairs": len(gap), "unseen": shown})
    return pl.DataFrame(rows)
