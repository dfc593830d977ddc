"""Draw a task's state graph as an SVG file.

States are in columns by their distance from the start. Blue edges deserve credit, orange ones
blame; dashed ones had no effect. All text is escaped: a log cannot put markup into a picture.
"""

from collections.abc import Iterator
from itertools import pairwise
from xml.sax.saxutils import escape

from graphcredit.viewer.graph.layout import Layout, Point, label_places, layers_of, layout_of
from graphcredit.viewer.graph.state_names import StateName, action_words, state_names
from graphcredit.viewer.graph.task_graph import Edge, Node, TaskGraph
from graphcredit.viewer.graph.words import box_label
from graphcredit.viewer.widgets.colours import NEUTRAL, SignedScale

_COLUMN, _ROW = 240, 96
_WIDTH, _HEIGHT = 158, 50
_MARGIN, _HEAD = 30, 98


def draw(graph: TaskGraph, *, title: str) -> str:
    """Return the SVG of a graph.

    Args:
        graph: From `read_task_graph`.
        title: The heading, one line.
    """
    layout = layout_of(
        graph, layers_of(graph), column=_COLUMN, row=_ROW, box=(_WIDTH, _HEIGHT)
    ).moved(_MARGIN + _WIDTH / 2, _HEAD + _HEIGHT)
    width = max(x for x, _ in layout.places.values()) + _WIDTH / 2 + _MARGIN
    points = [*layout.places.values(), *(point for way in layout.controls for point in way)]
    height = max(y for _, y in points) + _HEIGHT + _MARGIN
    names = state_names(graph)
    scale = SignedScale.of(edge.advantage for edge in graph.edges)
    most = max((edge.visits for edge in graph.edges), default=1)
    body = [
        *_head(title, scale),
        *(
            line
            for index, edge in enumerate(graph.edges)
            for line in _edge(edge, _ends(edge, layout, index), scale, most)
        ),
        *(
            line
            for node in graph.nodes
            for line in _node(node, names[node.state_id], *layout.places[node.state_id])
        ),
        *_labels(graph, layout),
    ]
    size = f'width="{max(width, 620):.0f}" height="{height:.0f}"'
    style = 'font-family="DejaVu Sans, Verdana, sans-serif"'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>'
    return "\n".join([opening, '<rect width="100%" height="100%" fill="white"/>', *body, "</svg>"])


def _head(title: str, scale: SignedScale) -> Iterator[str]:
    yield f'<text x="{_MARGIN}" y="28" font-size="15" font-weight="bold">{_clean(title)}</text>'
    for step, colour in enumerate(scale.bar(41)):
        yield f'<rect x="{_MARGIN + step * 4}" y="40" width="4" height="10" fill="{colour}"/>'
    for x, label in zip((0, 164), scale.ends(), strict=True):
        yield _text(_MARGIN + x, 63, label, 10)
    yield _text(_MARGIN + 340, 49, "mean advantage; 5×, width: visits; dashed: no effect", 10)


def _node(node: Node, name: StateName, x: float, y: float) -> Iterator[str]:
    fill = "#fff3bf" if node.is_goal else "#ffffff"
    stroke = "#8a6d00" if node.is_goal else "#495057"
    pen = f'fill="{fill}" stroke="{stroke}" stroke-width="{2 if node.is_goal else 1.2}"'
    if node.goal_distance is None:
        pen += ' stroke-dasharray="4 3"'
    left, top = x - _WIDTH / 2, y - _HEIGHT / 2
    yield f'<rect x="{left:.0f}" y="{top:.0f}" width="{_WIDTH}" height="{_HEIGHT}" rx="9" {pen}/>'
    *lines, last = box_label(node, name).split("\n")
    for place, line in enumerate(lines):
        size, weight = (9.5, "normal") if place else (10.5, "bold")
        yield _text(x, y - 5 * len(lines) + 13 * place + 2, line, size, weight=weight)
    yield _text(x, y + 5 * len(lines) + 5, last, 9.5, colour="#495057")


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


def _edge(edge: Edge, points: list[Point], scale: SignedScale, most: int) -> Iterator[str]:
    colour = NEUTRAL if edge.advantage is None else scale.colour(edge.advantage)
    thickness = 1.4 + 4.6 * edge.visits / most
    dash = ' stroke-dasharray="5 4"' if edge.is_pruned else ""
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


def _labels(graph: TaskGraph, layout: Layout) -> Iterator[str]:
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
    for label, place in zip(labels, places, strict=True):
        if place is not None:
            yield _text(place[0], place[1] + 4, label, 9.5, halo=True)


def _text(
    x: float,
    y: float,
    text: str,
    size: float,
    *,
    weight: str = "normal",
    colour: str = "#212529",
    halo: bool = False,
) -> str:
    outline = ' stroke="white" stroke-width="3" paint-order="stroke"' if halo else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" fill="{colour}" '
        f'text-anchor="middle"{outline}>{_clean(text)}</text>'
    )


def _clean(text: str) -> str:
    """Return text that is safe in XML: escaped, control characters replaced."""
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))
