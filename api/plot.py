"""Charts for notebooks, by altair (the extra `view`): a rollout's credit, and estimators compared.

    from graphcredit import plot

    plot.credit("store", trajectory_id="x")
    plot.estimators("store", task_id="mug")

`graphcredit.show` draws the graph of a task.
"""

from typing import Any

import polars as pl

from graphcredit.scanning import scan
from graphcredit.store.errors import InputError, missing_extras
from graphcredit.store.layout import AnyStore
from graphcredit.store.near_names import did_you_mean

_BLAME, _CREDIT = "#b35806", "#2166ac"
_PARTS = ("_step_advantage", "_episode_advantage")


def credit(store: AnyStore, *, trajectory_id: str) -> Any:
    """Return a chart of a trajectory: the advantage of each step, an estimator a row.

    Raises:
        InputError: There is no such trajectory, or it has no credit.
        MissingDependencyError: altair is not installed.
    """
    with missing_extras():
        import altair as alt
    steps = _advantages(store, "trajectory_id", trajectory_id)
    colour = alt.when("datum.advantage > 0").then(alt.value(_CREDIT)).otherwise(alt.value(_BLAME))
    bars = alt.Chart(steps, title=trajectory_id, height=60).mark_bar()
    return bars.encode(
        x=alt.X("step_index:O", title="step"),
        y=alt.Y("advantage:Q", title=None),
        row=alt.Row("estimator:N", title=None),
        color=colour,
        tooltip=["step_index:O", "action:N", "advantage:Q"],
    ).resolve_scale(y="independent")


def estimators(store: AnyStore, *, task_id: str) -> Any:
    """Return a chart of a task's group: each pair of estimators, by the correlation of advantages.

    Raises:
        InputError: There is no such task, or it has no credit.
        MissingDependencyError: altair is not installed.
    """
    with missing_extras():
        import altair as alt
    wide = _advantages(store, "task_id", task_id).pivot(
        "estimator", index=["trajectory_id", "step_index"], values="advantage"
    )
    names = wide.columns[2:]
    pairs = [
        {"estimator": one, "with": other, "correlation": wide.select(pl.corr(one, other)).item()}
        for one in names
        for other in names
    ]
    squares = alt.Chart(pl.DataFrame(pairs), title=task_id).encode(
        x=alt.X("estimator:N", title=None), y=alt.Y("with:N", title=None)
    )
    scale = alt.Scale(domain=[-1, 0, 1], range=[_BLAME, "#f7f7f7", _CREDIT])
    return squares.mark_rect().encode(color=alt.Color("correlation:Q", scale=scale)) + (
        squares.mark_text().encode(text=alt.Text("correlation:Q", format=".2f"))
    )


def _advantages(store: AnyStore, column: str, name: str) -> pl.DataFrame:
    """Return a row for each step and estimator of a trajectory or a task."""
    rows = scan(store)
    known = rows.collect_schema().names()
    advantages = [
        each for each in known if each.endswith("_advantage") and not each.endswith(_PARTS)
    ]
    if not advantages:
        raise InputError("there must be credit to draw: `graphcredit credit STORE` assigns it")
    steps = rows.filter(pl.col(column) == name).collect()
    if not steps.height:
        names = rows.select(column).unique().collect().to_series()
        raise InputError(f"the store has no {column} {name!r}." + did_you_mean(name, names))
    return (
        steps.select("trajectory_id", "step_index", "action", *advantages)
        .unpivot(
            advantages,
            index=["trajectory_id", "step_index", "action"],
            variable_name="estimator",
            value_name="advantage",
        )
        .with_columns(pl.col("estimator").str.strip_suffix("_advantage"))
    )
