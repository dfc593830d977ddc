"""Charts for notebooks, by altair (the extra `view`): credit, a graph, and estimators compared.

    from graphcredit import plot

    plot.credit("store", trajectory_id="x")
    plot.graph("store", task_id="mug", estimator="reach")
    plot.estimators("store", task_id="mug")

`graphcredit.show` draws a graph with its steps, as the viewer does.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from graphcredit.credit.options import RECOMMENDED
from graphcredit.scanning import scan
from graphcredit.showing import graph_of_task
from graphcredit.store.errors import InputError, missing_extras
from graphcredit.store.layout import AnyStore, open_store
from graphcredit.store.near_names import did_you_mean
from graphcredit.viewer.graph.layout import Point, layers_of, layout_of
from graphcredit.viewer.graph.state_names import state_names
from graphcredit.viewer.graph.task_graph import Edge

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


def graph(
    store: AnyStore,
    *,
    task_id: str,
    estimator: str = RECOMMENDED,
    run_id: str | None = None,
    iteration: int | None = None,
) -> Any:
    """Return a chart of a task's state graph, or of what matters in a large one.

    The start stands at the left. A transition is thick where it begins, and has the colour of the
    mean advantage of its steps.

    Raises:
        InputError: There is no such task, or it has no credit by the estimator.
        MissingDependencyError: altair is not installed.
    """
    with missing_extras():
        import altair as alt
    opened = open_store(store)
    place = opened.one_iteration(run_id, iteration)
    whole, shown, _, shading = graph_of_task(opened, *place, task_id, estimator)
    layout = layout_of(shown, layers_of(whole), column=150, row=60, box=(20, 20))
    names = state_names(whole)
    states = [
        {
            "name": names[node.state_id].title,
            "state": node.state,
            "visits": node.visits,
            "success rate": node.success_rate,
            "x": layout.places[node.state_id][0],
            "y": layout.places[node.state_id][1],
        }
        for node in shown.nodes
    ]
    ways = [
        point
        for edge, controls in zip(shown.edges, layout.controls, strict=True)
        for point in _way(edge, layout.places, controls)
    ]
    x, y = alt.X("x:Q", axis=None), alt.Y("y:Q", axis=None, scale=alt.Scale(reverse=True))
    scale = alt.Scale(domainMid=0, range=[_BLAME, "#d0d0d0", _CREDIT])
    trails = alt.Chart(pl.DataFrame(ways), title=task_id, width=700).encode(
        x, y, detail="ends:N", order="order:O", tooltip=["actions:N", "steps:Q", "advantage:Q"]
    )
    points = alt.Chart(pl.DataFrame(states)).encode(
        x, y, tooltip=["state:N", "visits:Q", "success rate:Q"]
    )
    return (
        trails.mark_trail().encode(
            size=alt.Size("width:Q", scale=None),
            color=alt.Color("advantage:Q", scale=scale, title=shading.advantage),
        )
        + points.mark_circle(size=120, color="#444444", opacity=1)
        + points.mark_text(dy=-12).encode(text="name:N")
    )


def _way(
    edge: Edge, places: Mapping[int, Point], controls: Sequence[Point]
) -> Iterator[dict[str, Any]]:
    """Yield the points of a transition; one from a state to itself goes a little about."""
    source, target = places[edge.source], places[edge.target]
    if edge.source == edge.target:
        x, y = source
        controls = [(x - 20, y + 25), (x + 20, y + 25)]
    points = [source, *controls, target]
    for order, (x, y) in enumerate(points):
        yield {
            "ends": f"{edge.source}-{edge.target}",
            "order": order,
            "x": x,
            "y": y,
            "width": 7 - 6 * order / (len(points) - 1),
            "actions": " | ".join(edge.actions),
            "steps": edge.visits,
            "advantage": edge.advantage,
        }


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
