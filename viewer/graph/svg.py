"""Draw a task's state graph as an SVG file.

States are in layers by their distance from the start. Blue edges deserve credit, orange ones blame;
dashed ones had no effect. All text is escaped: a log cannot put markup into a picture.
"""

from collections.abc import Iterator, Mapping
from typing import TypeAlias
from xml.sax.saxutils import escape

from graphcredit.viewer.graph.layout import layered_positions
from graphcredit.viewer.graph.task_graph import Edge, Node, TaskGraph
from graphcredit.viewer.widgets.colours import NEUTRAL, colour_limit, diverging

_LAYER, _PLACE = 214, 92
_WIDTH, _HEIGHT = 118, 40
_MARGIN, _HEAD = 30, 78
_LABEL_LENGTH = 22

_Point: TypeAlias = tuple[float, float]


def draw(graph: TaskGraph, *, title: str) -> str:
    """Return the SVG of a graph.

    Args:
        graph: From `read_task_graph`.
        title: The heading, one line.
    """
    places = layered_positions(graph)
    lowest = min(y for _, y in places.values())
    centre = {
        key: (
            _MARGIN + _WIDTH / 2 + x * _LAYER,
            _HEAD + _HEIGHT + (y - lowest) * _PLACE,
        )
        for key, (x, y) in places.items()
    }
    width = max(x for x, _ in centre.values()) + _WIDTH / 2 + _MARGIN
    height = max(y for _, y in centre.values()) + _HEIGHT + _MARGIN
    limit = colour_limit(edge.advantage for edge in graph.edges)
    most = max((edge.visits for edge in graph.edges), default=1)
    body = [
        *_head(title, limit),
        *(line for edge in graph.edges for line in _edge(edge, centre, limit, most)),
        *(line for node in graph.nodes for line in _node(node, *centre[node.state_id])),
        *(line for edge in graph.edges for line in _label(edge, centre)),
    ]
    size = f'width="{max(width, 620):.0f}" height="{height:.0f}"'
    style = 'font-family="DejaVu Sans, Verdana, sans-serif"'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>'
    return "\n".join([opening, '<rect width="100%" height="100%" fill="white"/>', *body, "</svg>"])


def _head(title: str, limit: float) -> Iterator[str]:
    yield f'<text x="{_MARGIN}" y="28" font-size="15" font-weight="bold">{_clean(title)}</text>'
    for step in range(41):
        colour = diverging(step - 20, 20)
        yield f'<rect x="{_MARGIN + step * 4}" y="40" width="4" height="10" fill="{colour}"/>'
    for x, label in ((0, f"-{limit:.1f}"), (82, "0"), (164, f"+{limit:.1f}")):
        yield _text(_MARGIN + x, 63, label, 10)
    yield _text(_MARGIN + 340, 49, "mean advantage; 5×, width: visits; dashed: no effect", 10)


def _node(node: Node, x: float, y: float) -> Iterator[str]:
    fill = "#fff3bf" if node.is_goal else "#ffffff"
    stroke = "#8a6d00" if node.is_goal else "#495057"
    pen = f'fill="{fill}" stroke="{stroke}" stroke-width="{2 if node.is_goal else 1.2}"'
    if node.goal_distance is None:
        pen += ' stroke-dasharray="4 3"'
    left, top = x - _WIDTH / 2, y - _HEIGHT / 2
    yield f'<rect x="{left:.0f}" y="{top:.0f}" width="{_WIDTH}" height="{_HEIGHT}" rx="9" {pen}/>'
    distance = "no way seen" if node.goal_distance is None else f"{node.goal_distance:g} to go"
    name = "GOAL" if node.is_goal else f"{node.state_id}  {_headline(node.state)}"
    yield _text(x, y - 3, name, 11, weight="bold")
    yield _text(x, y + 12, f"{distance} · {node.visits}×", 9.5, colour="#495057")


def _edge(edge: Edge, centre: Mapping[int, _Point], limit: float, most: int) -> Iterator[str]:
    colour = NEUTRAL if edge.advantage is None else diverging(edge.advantage, limit)
    thickness = 1.4 + 4.6 * edge.visits / most
    dash = ' stroke-dasharray="5 4"' if edge.is_pruned else ""
    pen = f'fill="none" stroke="{colour}" stroke-width="{thickness:.1f}"{dash}'
    curve = _Curve(edge, centre)
    yield f'<path d="{curve.path()}" {pen}/>'
    yield f'<path d="{curve.arrow(5 + thickness)}" fill="{colour}"/>'


def _label(edge: Edge, centre: Mapping[int, _Point]) -> Iterator[str]:
    """Write the action near the right end of its edge, where the edges of a state are apart."""
    text, *others = edge.actions
    more = f" and {len(others)} more" if others else ""
    if len(text) > _LABEL_LENGTH:
        text = text[: _LABEL_LENGTH - 1] + "…"
    goes_right = centre[edge.target][0] > centre[edge.source][0]
    goes_left = centre[edge.target][0] < centre[edge.source][0]
    x, y = _Curve(edge, centre).point(0.76 if goes_right else 0.22 if goes_left else 0.5)
    yield _text(x, y + (11 if goes_left else -4), text + more, 9.5, halo=True)


class _Curve:
    """The curve of an edge, between the borders of two boxes, bent so that edges do not overlap."""

    def __init__(self, edge: Edge, centre: Mapping[int, _Point]) -> None:
        (x0, y0), (x3, y3) = centre[edge.source], centre[edge.target]
        self._points: tuple[_Point, _Point, _Point, _Point]
        if edge.source == edge.target:
            top = y0 - _HEIGHT / 2
            self._points = (
                (x0 - 26, top),
                (x0 - 40, top - 34),
                (x0 + 40, top - 34),
                (x0 + 26, top),
            )
        elif x3 > x0:
            self._points = _sideways((x0 + _WIDTH / 2, y0 - 9), (x3 - _WIDTH / 2, y3 - 9), 0.0)
        elif x3 < x0:
            self._points = _sideways((x0 - _WIDTH / 2, y0 + 10), (x3 + _WIDTH / 2, y3 + 10), 30.0)
        else:
            way = 1 if y3 > y0 else -1
            x = x0 + way * 30
            start, end = (x, y0 + way * _HEIGHT / 2), (x, y3 - way * _HEIGHT / 2)
            bend = way * 14 * max(1.0, abs(y3 - y0) / _PLACE - 1)
            self._points = (start, (x + bend, start[1]), (x + bend, end[1]), end)

    def path(self) -> str:
        """Return the SVG path of the line."""
        (x0, y0), (x1, y1), (x2, y2), (x3, y3) = self._points
        return f"M{x0:.1f} {y0:.1f}C{x1:.1f} {y1:.1f} {x2:.1f} {y2:.1f} {x3:.1f} {y3:.1f}"

    def point(self, share: float) -> _Point:
        """Return the point of the curve at a parameter from 0 to 1."""
        rest = 1 - share
        weights = (rest**3, 3 * rest**2 * share, 3 * rest * share**2, share**3)
        x = sum(weight * point[0] for weight, point in zip(weights, self._points, strict=True))
        y = sum(weight * point[1] for weight, point in zip(weights, self._points, strict=True))
        return x, y

    def arrow(self, size: float) -> str:
        """Return the SVG path of the arrow head."""
        _, _, (x2, y2), (x3, y3) = self._points
        dx, dy = x3 - x2, y3 - y2
        length = (dx * dx + dy * dy) ** 0.5 or 1.0
        dx, dy = dx / length * size, dy / length * size
        left = (x3 - dx - dy / 2, y3 - dy + dx / 2)
        right = (x3 - dx + dy / 2, y3 - dy - dx / 2)
        return f"M{x3:.1f} {y3:.1f}L{left[0]:.1f} {left[1]:.1f}L{right[0]:.1f} {right[1]:.1f}Z"


def _sideways(start: _Point, end: _Point, sag: float) -> tuple[_Point, _Point, _Point, _Point]:
    reach = (end[0] - start[0]) / 2
    return (
        start,
        (start[0] + reach, start[1] + sag),
        (end[0] - reach, end[1] + sag),
        end,
    )


def _headline(state: str) -> str:
    """Return the label of a state: its first words, without the decoration of room names."""
    first = state.strip().split("\n", 1)[0].strip("-= \t")
    return first if len(first) <= 14 else first[:13] + "…"


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
