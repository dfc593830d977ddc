"""Bend the edges of a drawing around its states, and put labels where they do not collide."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from graphcredit.viewer.graph.bends import Point, bends_around, curves

_LABEL_PLACES = (0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78)
_LABEL_SHIFTS = (0.0, -13.0, 13.0, -40.0, 40.0)
_SHIFTS_OF_LEVEL = (-13.0, 13.0, 0.0, -40.0, 40.0)
"""Of labels of edges that are nearly level: on a short one they would hide the arrow."""
_LETTER, _LINE = 6.6, 15.0
"""Size of a letter of a label, in pixels of the drawing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Route:
    """How to draw one edge; distances in pixels."""

    bend: float = 0.0
    """Of the control point from the middle, to the right of the direction of travel."""
    shift: Point | None = (0.0, 0.0)
    """Of the label from the middle of the curve; None where there is no room for it."""


def routes(
    ends: Sequence[tuple[Point, Point]],
    labels: Sequence[str],
    *,
    boxes: Mapping[Point, Point],
    order: Sequence[int],
) -> list[Route]:
    """Return how to draw edges.

    Args:
        ends: [num_edges] the centres of each edge's states; equal for a loop.
        labels: [num_edges] their labels.
        boxes: Centre of each state to half of its width and height. They stand in columns, with
            room between columns, and between the states of a column.
        order: Edges by importance: the labels of the first ones find room.
    """
    found = [Route(bend=bend) for bend in bends_around(ends, boxes)]
    taken = [
        (x - half_x, y - half_y, x + half_x, y + half_y)
        for (x, y), (half_x, half_y) in boxes.items()
    ]
    for index in order:
        shift = _place_label(ends[index], found[index].bend, labels[index], boxes, taken)
        found[index] = replace(found[index], shift=shift)
    return found


def _place_label(
    ends: tuple[Point, Point],
    bend: float,
    label: str,
    boxes: Mapping[Point, Point],
    taken: list[tuple[float, float, float, float]],
) -> Point | None:
    """Return the shift of a label to the first free place, and take that place."""
    if not label:
        return (0.0, 0.0)
    half = (len(label) * _LETTER / 2, _LINE / 2)
    start, end = ends
    if start == end:
        top = (start[0], start[1] - boxes[start][1] - 22)
        middle, candidates = top, [(top[0], top[1] + move) for move in (0.0, -12.0)]
    else:
        points = curves(np.array([[start, end]]), np.array([bend]), np.array(_LABEL_PLACES))[0]
        middle = (float(points[0][0]), float(points[0][1]))
        is_level = abs(end[1] - start[1]) < abs(end[0] - start[0]) / 4
        shifts = _SHIFTS_OF_LEVEL if is_level else _LABEL_SHIFTS
        candidates = [(float(x), float(y) + shift) for shift in shifts for x, y in points.tolist()]
    for x, y in candidates:
        box = (x - half[0], y - half[1], x + half[0], y + half[1])
        if not any(_overlap(box, other) for other in taken):
            taken.append(box)
            return (x - middle[0], y - middle[1])
    return None


def _overlap(
    one: tuple[float, float, float, float], other: tuple[float, float, float, float]
) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
