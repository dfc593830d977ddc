"""Bend the edges of a drawing around its states, and put labels where they do not collide."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Point = tuple[float, float]

_BENDS = (0.0, 16.0, -16.0, 34.0, -34.0, 60.0, -60.0, 95.0, -95.0, 140.0, -140.0, 200.0, -200.0)
_SHARES = np.linspace(0.06, 0.94, 23)
_LABEL_PLACES = (0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78)
_LABEL_SHIFTS = (0.0, -13.0, 13.0, -40.0, 40.0)
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
        boxes: Centre of each state to half of its width and height.
        order: Edges by importance: the labels of the first ones find room.
    """
    centres = np.array(list(boxes), dtype=float).reshape(-1, 2)
    halves = np.array(list(boxes.values()), dtype=float).reshape(-1, 2)
    pairs = set(ends)
    found = [
        Route(bend=_bend(start, end, centres, halves, has_reverse=(end, start) in pairs))
        for start, end in ends
    ]
    taken = [
        (x - half_x, y - half_y, x + half_x, y + half_y)
        for (x, y), (half_x, half_y) in boxes.items()
    ]
    for index in order:
        shift = _place_label(ends[index], found[index].bend, labels[index], boxes, taken)
        found[index] = replace(found[index], shift=shift)
    return found


def curve(start: Point, end: Point, bend: float, shares: Floats) -> Floats:
    """Return [n, 2] points of a quadratic curve, which Cytoscape draws for a bend."""
    source, target = np.array(start), np.array(end)
    way = target - source
    length = float(np.hypot(*way)) or 1.0
    control = (source + target) / 2 + bend * np.array([-way[1], way[0]]) / length
    t = shares[:, None]
    return (1 - t) ** 2 * source + 2 * t * (1 - t) * control + t**2 * target


def _bend(start: Point, end: Point, centres: Floats, halves: Floats, *, has_reverse: bool) -> float:
    """Return the least bend with which an edge runs through the fewest other states."""
    if start == end:
        return 0.0
    own = np.array([start, end])
    is_other = ~(centres[:, None] == own[None]).all(axis=2).any(axis=1)
    others, room = centres[is_other], halves[is_other] + 5
    # An edge and its reverse bend to opposite sides, since each counts from its own direction.
    bends = [bend for bend in _BENDS if bend > 0] if has_reverse else list(_BENDS)

    def hits(bend: float) -> int:
        points = curve(start, end, bend, _SHARES)
        inside = (np.abs(points[:, None] - others[None]) < room[None]).all(axis=2)
        return int(inside.any(axis=0).sum())

    return min(bends, key=lambda bend: (hits(bend), abs(bend)))


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
        points = curve(start, end, bend, np.array(_LABEL_PLACES))
        middle = (float(points[0][0]), float(points[0][1]))
        candidates = [
            (float(x), float(y) + shift) for shift in _LABEL_SHIFTS for x, y in points.tolist()
        ]
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
