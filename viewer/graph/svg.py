"""Draw a task's state graph as an SVG file, with a title and a legend.

States are in columns by their distance from the start. Blue edges deserve credit, orange ones
with a bar at the tip blame. All text is escaped: a log cannot put markup into a picture.
"""

from collections.abc import Iterator
from itertools import pairwise

from graphcredit.store.log_text import in_html
from graphcredit.viewer.graph.layout import Layout, Point, label_places, layers_of, layout_of
from graphcredit.viewer.graph.scales import SEEN, Scales
from graphcredit.viewer.graph.shading import Shading
from graphcredit.viewer.graph.state_names import StateName, action_words, state_names
from graphcredit.viewer.graph.task_graph import Edge, Node, TaskGraph
from graphcredit.viewer.graph.words import box_label
from graphcredit.viewer.widgets.colours import NEUTRAL, ink_on, sequential

_COLUMN, _ROW = 240, 96
_WIDTH, _HEIGHT = 158, 50
_MARGIN, _HEAD = 30, 98
_INK = "#212529"


def draw(
    graph: TaskGraph, *, title: str, whole: TaskGraph | None = None, shading: Shading | None = None
) -> str:
    """Return the SVG of a graph."""
    whole = graph if whole is None else whole
    shading = Shading(advantage="mean advantage") if shading is None else shading
    layout = layout_of(graph, layers_of(whole), column=_COLUMN, row=_ROW, box=(_WIDTH, _HEIGHT))
    layout = layout.moved(_MARGIN + _WIDTH / 2, _HEIGHT + _HEAD)
    width = max(x for x, _ in layout.places.values()) + _WIDTH / 2 + _MARGIN
    points = [*layout.places.values(), *(point for way in layout.controls for point in way)]
    height = max(y for _, y in points) + _HEIGHT + _MARGIN
    names, scales = state_names(whole), Scales.of(whole, shading)
    body = [
        *_head(title, shading, scales),
        *(
            line
            for index, edge in enumerate(graph.edges)
            for line in _edge(edge, _ends(edge, layout, index), shading, scales)
        ),
        *(
            line
            for node in graph.nodes
            for line in _node(
                node, names[node.state_id], scales.shade(node), *layout.places[node.state_id]
            )
        ),
        *_labels(graph, layout, shading),
    ]
    size = f'width="{max(width, 700):.0f}" height="{height:.0f}"'
    style = f'color="{_INK}" font-family="DejaVu Sans, Verdana, sans-serif"'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>'
    paper = '<rect width="100%" height="100%" fill="white"/>'
    return "\n".join([opening, paper, *body, "</svg>"])


def _head(title: str, shading: Shading, scales: Scales) -> Iterator[str]:
    yield _text(_MARGIN, 28, title, 15, weight="bold", anchor="start")
    states = [sequential(step / 12) for step in range(13)]
    marks = "5×, width: visits; dashed: no effect; dotted: a way; bar at the tip: below 0"
    for x, name, colours, ends in (
        (0, shading.advantage, scales.credit.bar(), scales.credit.ends()),
        (330, SEEN, states, scales.state_ends()),
    ):
        for step, colour in enumerate(colours):
            left = _MARGIN + x + step * 10
            yield f'<rect x="{left}" y="40" width="10.5" height="10" fill="{colour}"/>'
        yield _text(_MARGIN + x, 64, ends[0], 10, anchor="start")
        yield _text(_MARGIN + x + 130, 64, ends[1], 10)
        yield _text(_MARGIN + x + 140, 49, name, 10, anchor="start")
    yield _text(_MARGIN, 82, marks, 10, anchor="start")


def _node(node: Node, name: StateName, shade: float | None, x: float, y: float) -> Iterator[str]:
    fill, ink = ("none", "currentColor") if shade is None else (sequential(shade), ink_on(shade))
    pen = f'fill="{fill}" stroke="currentColor" stroke-width="{3 if node.is_goal else 1.2}"'
    if node.goal_distance is None:
        pen += ' stroke-dasharray="4 3"'
    left, top = x - _WIDTH / 2, y - _HEIGHT / 2
    yield f'<rect x="{left:.0f}" y="{top:.0f}" width="{_WIDTH}" height="{_HEIGHT}" rx="9" {pen}/>'
    lines = box_label(node, name).split("\n")
    for place, line in enumerate(lines):
        weight = "normal" if place else "bold"
        middle = y + 13 * (place - (len(lines) - 1) / 2) + 4
        yield _text(x, middle, line, 9.5, weight=weight, colour=ink)


def _ends(edge: Edge, layout: Layout, index: int) -> list[Point]:
    """Return where an edge leaves its box, its control points, and where it enters a box."""
    start, end = layout.places[edge.source], layout.places[edge.target]
    if edge.source == edge.target:
        x, top = start[0], start[1] - _HEIGHT / 2
        return [(x - 26, top), (x - 40, top - 14), (x + 40, top - 14), (x + 26, top)]
    controls = layout.controls[index]
    first, last = (controls[0], controls[-1]) if controls else (end, start)
    return [_border(start, first), *controls, _border(end, last)]


def _border(centre: Point, towards: Point) -> Point:
    """Return where the line from the centre of a box to a point outside crosses its border."""
    dx, dy = towards[0] - centre[0], towards[1] - centre[1]
    share = min(_WIDTH / 2 / max(abs(dx), 1e-9), _HEIGHT / 2 / max(abs(dy), 1e-9))
    return centre[0] + dx * share, centre[1] + dy * share


def _edge(edge: Edge, points: list[Point], shading: Shading, scales: Scales) -> Iterator[str]:
    value = shading.drawn_value(edge)
    colour = NEUTRAL if value is None else scales.credit.colour(value)
    thickness = 1.4 + 4.6 * edge.visits / scales.most
    dashes = "2 4" if edge.between else "5 4" if edge.is_pruned else ""
    dash = f' stroke-dasharray="{dashes}"' if dashes else ""
    pen = f'fill="none" stroke="{colour}" stroke-width="{thickness:.1f}"{dash}'
    (x0, y0), *controls, (x1, y1) = points
    joints = [((a + c) / 2, (b + d) / 2) for (a, b), (c, d) in pairwise(controls)]
    curve = "".join(
        f"Q{cx:.1f} {cy:.1f} {x:.1f} {y:.1f}"
        for (cx, cy), (x, y) in zip(controls, [*joints, (x1, y1)], strict=False)
    )
    yield f'<path d="M{x0:.1f} {y0:.1f}{curve or f"L{x1:.1f} {y1:.1f}"}" {pen}/>'
    before = points[-2]
    dx, dy = x1 - before[0], y1 - before[1]
    length = (5 + thickness) / ((dx * dx + dy * dy) ** 0.5 or 1.0)
    dx, dy = dx * length, dy * length
    tip = f"M{x1:.1f} {y1:.1f}L{x1 - dx - dy / 2:.1f} {y1 - dy + dx / 2:.1f}"
    yield f'<path d="{tip}L{x1 - dx + dy / 2:.1f} {y1 - dy - dx / 2:.1f}Z" fill="{colour}"/>'
    if (value or 0.0) < 0:
        x, y = x1 - 1.3 * dx, y1 - 1.3 * dy
        bar = f"M{x - 0.8 * dy:.1f} {y + 0.8 * dx:.1f}L{x + 0.8 * dy:.1f} {y - 0.8 * dx:.1f}"
        yield f'<path d="{bar}" stroke="{colour}" stroke-width="2.5"/>'


def _labels(graph: TaskGraph, layout: Layout, shading: Shading) -> Iterator[str]:
    """Yield the actions that have room, those of the greatest advantages first."""
    labels = [
        action_words(edge.actions[0])
        + (f" and {len(edge.actions) - 1} more" if len(edge.actions) > 1 else "")
        for edge in graph.edges
    ]
    places = label_places(
        graph.edges,
        layout,
        labels,
        sizes={node.state_id: (_WIDTH, _HEIGHT) for node in graph.nodes},
        order=sorted(range(len(labels)), key=lambda i: -abs(graph.edges[i].advantage or 0.0)),
    )
    for edge, label, place in zip(graph.edges, labels, places, strict=True):
        if place is not None:
            weight = "bold" if edge.ends in shading.own else "normal"
            yield _text(place[0], place[1] + 4, label, 9.5, weight=weight, halo=True)


def _text(
    x: float,
    y: float,
    text: str,
    size: float,
    *,
    weight: str = "normal",
    colour: str = "currentColor",
    anchor: str = "middle",
    halo: bool = False,
) -> str:
    outline = ' stroke="white" stroke-width="3" paint-order="stroke"' if halo else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" fill="{colour}" '
        f'text-anchor="{anchor}"{outline}>{in_html(text)}</text>'
    )
