"""Edges bend around states, and labels stand apart."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.viewer.graph.bends import Floats, Point, bends_around, curves
from graphcredit.viewer.graph.routes import Route, routes

BOX = (64.0, 30.0)
CLEARANCE = 5.0
BENDS = (0, 16, -16, 34, -34, 60, -60, 95, -95, 140, -140, 200, -200, 280, -280, 380, -380)
LETTER, LINE = 6.6, 15.0


def route(*ends: tuple[tuple[float, float], tuple[float, float]], labels: str = "") -> list[Route]:
    boxes = {point: BOX for pair in ends for point in pair}
    given = [labels] * len(ends)
    return routes(list(ends), given, boxes=boxes, order=range(len(ends)))


def curve(start: Point, end: Point, bend: float, shares: Floats) -> Floats:
    return curves(np.array([[start, end]], dtype=float), np.array([bend]), shares)[0]


def test_an_edge_with_nothing_in_its_way_is_straight():
    (found,) = route(((0, 0), (300, 0)))
    assert found.bend == 0


def test_an_edge_bends_around_a_state_on_its_way():
    first, around, second = route(((0, 0), (200, 0)), ((0, 0), (400, 0)), ((200, 0), (400, 0)))
    assert (first.bend, second.bend) == (0, 0)
    points = curve((0, 0), (400, 0), around.bend, np.linspace(0, 1, 101))
    inside = (np.abs(points - np.array([200, 0])) < np.array(BOX)).all(axis=1)
    assert not inside.any()


def test_an_edge_and_its_reverse_bend_to_opposite_sides():
    there, back = route(((0, 0), (300, 0)), ((300, 0), (0, 0)))
    assert there.bend == back.bend > 0
    middle = np.array([0.5])
    below = curve((0, 0), (300, 0), there.bend, middle)[0, 1]
    above = curve((300, 0), (0, 0), back.bend, middle)[0, 1]
    assert below == pytest.approx(-above) != 0


def test_a_curve_is_the_quadratic_one_through_its_control_point():
    # From (0, 0) to (200, 0) by a bend of 50: the control point is (100, 50), the middle (100, 25).
    assert curve((0, 0), (200, 0), 50.0, np.array([0, 0.5, 1])).tolist() == [
        [0, 0],
        [100, 25],
        [200, 0],
    ]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=2, max_size=12, unique=True),
    st.data(),
)
def test_labels_overlap_neither_each_other_nor_states(
    places: list[tuple[int, int]], data: st.DataObject
):
    points = [(x * 178.0, y * 112.0) for x, y in places]
    pairs = st.tuples(st.sampled_from(points), st.sampled_from(points))
    ends = data.draw(st.lists(pairs, max_size=20, unique=True))
    label = "open the gate"
    found = routes(
        ends, [label] * len(ends), boxes=dict.fromkeys(points, BOX), order=range(len(ends))
    )
    half = np.array([len(label) * LETTER / 2, LINE / 2])
    centres = []
    for (start, end), route in zip(ends, found, strict=True):
        if route.shift is not None:
            middle = curve(start, end, route.bend, np.array([0.5]))[0]
            if start == end:
                middle = np.array([start[0], start[1] - BOX[1] - 22])
            centres.append(middle + np.array(route.shift))
    for one, other in combinations(centres, 2):
        assert (np.abs(one - other) >= 2 * half - 1e-6).any()
    for centre in centres:
        for point in points:
            assert (np.abs(centre - np.array(point)) >= half + np.array(BOX) - 1e-6).any()


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=3, max_size=14, unique=True),
    st.data(),
)
def test_a_bent_edge_is_freer_than_a_straight_one_by_looking_at_every_state(
    places: list[tuple[int, int]], data: st.DataObject
):
    points = [(x * 178.0, y * 112.0) for x, y in places]
    pairs = st.tuples(st.sampled_from(points), st.sampled_from(points))
    ends = data.draw(st.lists(pairs.filter(lambda pair: pair[0] != pair[1]), max_size=9))

    def share_inside(start: Point, end: Point, bend: float) -> float:
        others = np.array([point for point in points if point not in (start, end)])
        long = float(np.hypot(end[0] - start[0], end[1] - start[1]))
        number = next(n for n in (23, 46, 92, 184) if long / 20 <= n)
        on_curve = curve(start, end, bend, np.linspace(0.06, 0.94, number))
        apart = np.abs(on_curve[:, None] - others[None])
        return float((apart < np.array(BOX) + CLEARANCE).all(axis=2).any(axis=1).mean())

    for (start, end), bend in zip(
        ends, bends_around(ends, dict.fromkeys(points, BOX)), strict=True
    ):
        allowed = [b for b in BENDS if b > 0 or (end, start) not in ends]
        inside = {b: share_inside(start, end, b) for b in allowed}
        assert inside[bend] == min(inside.values())
        assert abs(bend) == min(abs(b) for b in allowed if inside[b] == inside[bend])
