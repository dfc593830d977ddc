"""Bend the edges of a drawing so that they run through as few of its states as possible.

All edges are tried with one bend after the other; those that are free keep it. Points of curves are
looked up in the columns of states, so that thousands of edges take a fraction of a second.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Point: TypeAlias = tuple[float, float]

_BENDS = (
    *(0.0, 16.0, -16.0, 34.0, -34.0, 60.0, -60.0, 95.0, -95.0, 140.0, -140.0, 200.0, -200.0),
    *(280.0, -280.0, 380.0, -380.0),
)
_CLEARANCE = 5.0
_APART = 20.0
"""Pixels between two points of a curve that are looked at."""
_FEWEST, _MOST = 23, 200
"""Points of a curve to look at."""


def bends_around(ends: Sequence[tuple[Point, Point]], boxes: Mapping[Point, Point]) -> list[float]:
    """Return the least bend of each edge with which it runs through the fewest other states.

    An edge and its reverse bend to opposite sides, since each counts from its own direction.

    Args:
        ends: [num_edges] the centres of each edge's states; equal for a loop, which has no bend.
        boxes: Centre of each state to half of its width and height. They stand in columns, with
            room between columns, and between the states of a column.
    """
    return list(_bends(tuple(ends), tuple(boxes.items())))


# A page is run again with each click, and its drawing stays the same.
@lru_cache(maxsize=16)
def _bends(
    ends: tuple[tuple[Point, Point], ...], boxes: tuple[tuple[Point, Point], ...]
) -> tuple[float, ...]:
    if not ends:
        return ()
    places = np.array(ends, dtype=float)
    states = _States(dict(boxes))
    own = np.array([[states.number[start], states.number[end]] for start, end in ends])
    pairs = set(ends)
    has_reverse = np.array([(end, start) in pairs for start, end in ends])
    is_loop = own[:, 0] == own[:, 1]
    fewest = np.full(len(ends), np.inf)
    chosen = np.zeros(len(ends))
    fewest[is_loop] = 0
    for bend in _BENDS:
        open_ = np.flatnonzero((fewest > 0) & ~(has_reverse & (bend <= 0)))
        hits = _hits(places[open_], own[open_], bend, states)
        better = hits < fewest[open_]
        fewest[open_[better]], chosen[open_[better]] = hits[better], bend
    return tuple(chosen.tolist())


def curves(ends: Floats, bends: Floats, shares: Floats) -> Floats:
    """Return [num_edges, num_shares, 2] points of quadratic curves, as Cytoscape draws a bend.

    Args:
        ends: [num_edges, 2, 2] where each edge starts and ends.
        bends: [num_edges] of the control point from the middle, to the right of the direction.
        shares: [num_shares] parameters of the curve, from 0 at its start to 1 at its end.
    """
    source, target = ends[:, 0], ends[:, 1]
    way = target - source
    length = np.maximum(np.hypot(way[:, 0], way[:, 1]), 1e-9)
    aside = np.stack([-way[:, 1], way[:, 0]], axis=1) / length[:, None]
    control = (source + target) / 2 + bends[:, None] * aside
    t = shares[None, :, None]
    near, far = (1 - t) ** 2 * source[:, None], t**2 * target[:, None]
    return near + 2 * t * (1 - t) * control[:, None] + far


def _hits(ends: Floats, own: NDArray[np.int64], bend: float, states: "_States") -> Floats:
    """Return the share of each edge's points that are in other states than its own."""
    hits = np.zeros(len(ends))
    way = ends[:, 1] - ends[:, 0]
    wanted = np.clip(np.hypot(way[:, 0], way[:, 1]) / _APART, _FEWEST, _MOST)
    # Edges of about the same length are looked at together.
    size = np.minimum(_FEWEST * 2 ** np.ceil(np.log2(wanted / _FEWEST)), _MOST).astype(np.int64)
    for number in np.unique(size):
        some = np.flatnonzero(size == number)
        shares = np.linspace(0.06, 0.94, number)
        points = curves(ends[some], np.full(len(some), bend), shares)
        at = states.at(points.reshape(-1, 2)).reshape(len(some), number)
        is_own = (at == own[some, :1]) | (at == own[some, 1:])
        hits[some] = ((at >= 0) & ~is_own).mean(axis=1)
    return hits


class _States:
    """The states of a drawing, to be found by a point."""

    def __init__(self, boxes: Mapping[Point, Point]) -> None:
        centres = np.array(list(boxes), dtype=float).reshape(-1, 2)
        self.number = {centre: index for index, centre in enumerate(boxes)}
        self._columns, column = np.unique(centres[:, 0], return_inverse=True)
        self._top, self._height = centres[:, 1].min(), np.ptp(centres[:, 1])
        self._order = np.lexsort((centres[:, 1], column))
        self._centres = centres
        self._room = np.array(list(boxes.values()), dtype=float).reshape(-1, 2) + _CLEARANCE
        self._keys = self._key(column, centres[:, 1])[self._order]

    def at(self, points: Floats) -> NDArray[np.int64]:
        """Return [num_points] the number of the state at each point; -1 for none."""
        column = _nearest(self._columns, points[:, 0])
        y = np.clip(points[:, 1], self._top, self._top + self._height)
        state = self._order[_nearest(self._keys, self._key(column, y))]
        is_in = (np.abs(points - self._centres[state]) < self._room[state]).all(axis=1)
        return np.where(is_in, state, -1)

    def _key(self, column: NDArray[np.int64], y: Floats) -> Floats:
        """Return numbers that sort by column, then by height."""
        return column * (2 * self._height + 1) + (y - self._top)


def _nearest(ascending: Floats, values: Floats) -> NDArray[np.int64]:
    """Return, for each value, the index of the nearest of some sorted numbers."""
    middles = (ascending[:-1] + ascending[1:]) / 2
    return np.searchsorted(middles, values)
