"""Charts of a search: the entities around the answer, and how a trajectory came near it."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import altair as alt

from graphcredit.viewer.search.entities import Entity, Mention, TaskEntities
from graphcredit.viewer.steps.charts import Chart
from graphcredit.viewer.widgets.colours import NEUTRAL
from graphcredit.viewer.widgets.text import one_line

MAX_ENTITIES = 36
"""Most entities to draw."""

_STATES = ["answer", "cited", "retrieved", "never seen"]
_COLOURS = ["#a97f00", "#2469b8", "#4f8fcb", "#8a8f98"]


def drawn_entities(known: TaskEntities, found: Sequence[Mention]) -> list[Entity]:
    """Return the entities that are drawn: answers, those that were found, then those near."""
    seen = {mention.entity.entity_id for mention in found}
    ordered = sorted(known.entities, key=lambda e: not (e.is_answer or e.entity_id in seen))
    kept = {entity.entity_id for entity in ordered[:MAX_ENTITIES]}
    return [entity for entity in known.entities if entity.entity_id in kept]


def entity_map(known: TaskEntities, found: Sequence[Mention]) -> Chart:
    """Return entities in columns by their distance to the answer, relations between them.

    Args:
        known: The task.
        found: What a trajectory came across.
    """
    nodes = _placed(drawn_entities(known, found), found)
    of_id = {node["id"]: node for node in nodes}
    lines = [
        {"x": a["x"], "y": a["y"], "x2": b["x"], "y2": b["y"]}
        | {"relation": f"{a['name']} – {one_line(relation)} – {b['name']}"}
        for head, relation, tail in known.relations
        if (a := of_id.get(head)) and (b := of_id.get(tail))
    ]
    farthest = max((node["x"] for node in nodes), default=0)
    # Room for names beside the last columns; the answer stands on the right.
    x = alt.X(
        "x:Q",
        title="relations to the answer",
        scale=alt.Scale(domain=[farthest + 0.3, -0.7], nice=False),
        axis=alt.Axis(values=list(range(farthest + 1)), format="d", grid=False),
    )
    y = alt.Y("y:Q", axis=None)
    rule = (
        alt.Chart(alt.Data(values=lines))
        .mark_rule(color=NEUTRAL, opacity=0.5)
        .encode(x=x, y=y, x2="x2:Q", y2="y2:Q", tooltip=[alt.Tooltip("relation:N")])
    )
    base = alt.Chart(alt.Data(values=nodes)).encode(x=x, y=y)
    point = base.mark_point(filled=True, size=150, opacity=1).encode(
        color=alt.Color("kind:N", title=None, scale=alt.Scale(domain=_STATES, range=_COLOURS)),
        shape=alt.Shape(
            "kind:N",
            title=None,
            scale=alt.Scale(domain=_STATES, range=["diamond", "circle", "circle", "circle"]),
        ),
        tooltip=[alt.Tooltip("name:N"), alt.Tooltip("kind:N"), alt.Tooltip("when:N")],
    )
    text = base.mark_text(dx=10, align="left", fontSize=11).encode(text="name:N")
    tallest = max((node["rows"] for node in nodes), default=1)
    return alt.layer(rule, point, text).properties(height=max(160, 26 * tallest))


def approach(found: Sequence[Mention], *, num_steps: int) -> Chart:
    """Return a chart of the entities first retrieved or cited at each step, by distance."""
    rows = [
        {
            "step": mention.step,
            "distance": mention.entity.distance,
            "name": one_line(mention.entity.name),
            "kind": "cited" if mention.is_citation else "retrieved",
        }
        for mention in found
        if mention.entity.distance is not None
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X(
            "step:O",
            title="step",
            axis=alt.Axis(labelAngle=0, labelOverlap=True),
            scale=alt.Scale(domain=list(range(num_steps))),
        ),
        y=alt.Y("distance:Q", title="to the answer", axis=alt.Axis(tickMinStep=1, format="d")),
        tooltip=[alt.Tooltip(f"{name}:N") for name in ("name", "kind", "step", "distance")],
    )
    colour = alt.Color(
        "kind:N", title=None, scale=alt.Scale(domain=_STATES[1:3], range=_COLOURS[1:3])
    )
    point = base.mark_point(size=130, filled=True, opacity=1).encode(
        color=colour, xOffset=alt.XOffset("kind:N")
    )
    return alt.layer(point).properties(height=180)


def _placed(entities: Sequence[Entity], found: Sequence[Mention]) -> list[dict[str, Any]]:
    """Return the position of each entity, its kind for the trajectory, and its first step."""
    retrieved = {m.entity.entity_id: m.step for m in found if not m.is_citation}
    cited = {m.entity.entity_id: m.step for m in found if m.is_citation}
    beyond = max((e.distance for e in entities if e.distance is not None), default=0) + 1

    def column(entity: Entity) -> int:
        return beyond if entity.distance is None else entity.distance

    nodes: list[dict[str, Any]] = []
    for x, members in groupby(sorted(entities, key=column), key=column):
        same = list(members)
        for row, entity in enumerate(same):
            key = entity.entity_id
            kind = "cited" if key in cited else "retrieved" if key in retrieved else "never seen"
            when = [f"retrieved at step {retrieved[key]}"] if key in retrieved else []
            when += [f"cited at step {cited[key]}"] if key in cited else []
            nodes.append(
                {
                    "id": key,
                    "x": x,
                    "y": row - (len(same) - 1) / 2,
                    "rows": len(same),
                    "name": one_line(entity.name, 28),
                    "kind": "answer" if entity.is_answer else kind,
                    "when": ", ".join(when) or "–",
                }
            )
    return nodes
