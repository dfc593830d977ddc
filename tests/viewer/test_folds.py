"""Chains and rooms are one node of a large graph."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.store import Store
from graphcredit.viewer.graph import folds as folds_module
from graphcredit.viewer.graph.cytoscape import draw_part
from graphcredit.viewer.graph.folds import (
    FEWEST,
    Fold,
    folded,
    folds_of,
    outside,
    ways_inside,
)
from graphcredit.viewer.graph.keys import edge_key, fold_key, node_key, parse_key
from graphcredit.viewer.graph.layout import layers_of
from graphcredit.viewer.graph.shading import Shading
from graphcredit.viewer.graph.task_graph import TaskGraph, read_task_graph
from tests.viewer.graphs import graph_of
from tests.viewer.stores import corridors, credited


@pytest.fixture(autouse=True)
def fold_small_graphs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(folds_module, "READABLE", 0)


def _graph(ends: list[tuple[int, int]], goal: int | None = None) -> TaskGraph:
    return graph_of("0", *(f"{source} {target}" for source, target in ends), goal=goal)


def _states(chains: list[Fold]) -> list[list[int]]:
    return [[node.state_id for node in chain.nodes] for chain in chains]


def test_a_run_between_two_forks_is_one_chain():
    ends = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 5), (5, 4), (4, 0), (4, 4)]
    assert _states(folds_of(_graph(ends))) == [[1, 2, 3]]


@pytest.mark.parametrize(
    "more", [(2, 2), (2, 0), (0, 2)], ids=["a loop", "a second way out", "a second way in"]
)
def test_what_has_another_way_is_in_no_chain(more: tuple[int, int]):
    ends = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]
    assert _states(folds_of(_graph(ends))) == [[1, 2, 3, 4]]
    assert _states(folds_of(_graph([*ends, more]))) == []


def test_start_goal_and_kept_states_are_drawn_themselves():
    ends = [(state, state + 1) for state in range(9)]
    assert _states(folds_of(_graph(ends, goal=5))) == [[1, 2, 3, 4], [6, 7, 8]]
    assert _states(folds_of(_graph(ends), kept={4})) == [[1, 2, 3], [5, 6, 7, 8]]
    assert _states(folds_of(_graph(ends), kept={2, 5})) == [[6, 7, 8]]


def test_a_circle_that_nothing_leads_to_is_no_chain():
    assert _states(folds_of(_graph([(0, 1), (2, 3), (3, 4), (4, 5), (5, 2)]))) == []


def test_a_graph_that_can_be_read_has_no_chains(monkeypatch: pytest.MonkeyPatch):
    graph = _graph([(state, state + 1) for state in range(9)])
    monkeypatch.setattr(folds_module, "READABLE", 10)
    assert folds_of(graph) == []


ENDS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=24)
KEPT = st.sets(st.integers(0, 12), max_size=3)


@given(ENDS, KEPT)
def test_nothing_is_lost(ends: list[tuple[int, int]], kept: set[int]):
    graph = _graph(ends)
    folds = folds_of(graph, kept)
    inside = [node.state_id for fold in folds for node in fold.nodes]
    assert len(inside) == len(set(inside))
    assert not {0, *kept} & set(inside)
    assert all(len(fold.nodes) == len(fold.steps) >= FEWEST for fold in folds)
    outer = folded(graph, folds)
    drawn = [edge.ends for edge in outside(graph, folds)]
    hidden = [e.ends for fold in folds for e in (*fold.edges, *ways_inside(graph, fold))]
    assert len(outer.nodes) + len(inside) - len(folds) == len(graph.nodes)
    assert sorted(drawn + hidden) == sorted(edge.ends for edge in graph.edges)
    # No two transitions of the drawing have the same ends, and each end is drawn.
    assert len({edge.ends for edge in outer.edges}) == len(outer.edges) == len(drawn)
    assert {end for edge in outer.edges for end in edge.ends} <= {n.state_id for n in outer.nodes}


@given(ENDS, KEPT)
def test_every_longest_run_that_is_in_no_room_is_found(ends: list[tuple[int, int]], kept: set[int]):
    graph = _graph(ends)
    folds = folds_of(graph, kept)
    in_rooms = {n.state_id for fold in folds if fold.kind == "room" for n in fold.nodes}
    pairs = {edge.ends for edge in graph.edges}
    for chain in (fold for fold in folds if fold.kind == "chain"):
        states = [node.state_id for node in chain.nodes]
        for state in states:
            assert sum(target == state for _, target in pairs) == 1
            assert sum(source == state for source, _ in pairs) == 1
        assert [edge.ends for edge in chain.edges] == list(pairwise(states))
        # Slowly: a chain is longest if neither neighbour could belong to it.
        (before,) = [source for source, target in pairs if target == chain.first]
        (behind,) = [target for source, target in pairs if source == chain.last]
        for state in (before, behind):
            one = sum(t == state for _, t in pairs) == sum(s == state for s, _ in pairs) == 1
            assert not one or state in {0, *kept, *in_rooms} or (state, state) in pairs


def _reached(pairs: set[tuple[int, int]], start: int, without: frozenset[int]) -> set[int]:
    """Return the states to which a way leads from a state that is not without."""
    found = {start} - without
    while more := {t for s, t in pairs if s in found and t not in found and t not in without}:
        found |= more
    return found


def _is_behind(
    pairs: set[tuple[int, int]], part: frozenset[int], door: int, kept: set[int]
) -> bool:
    """Return whether a part is entered from its door, and left to it or not at all."""
    entered = {s for s, t in pairs if t in part and s not in part}
    left = {t for s, t in pairs if s in part and t not in part}
    return entered == {door} and left <= {door} and not part & {0, *kept}


@given(ENDS, KEPT)
def test_what_is_behind_one_state_is_a_room(ends: list[tuple[int, int]], kept: set[int]):
    graph = _graph(ends)
    pairs = {edge.ends for edge in graph.edges}
    rooms = [fold for fold in folds_of(graph, kept) if fold.kind == "room"]
    there = _reached(pairs, 0, frozenset())
    for room in rooms:
        part = frozenset(node.state_id for node in room.nodes)
        (door,) = {s for s, t in pairs if t in part and s not in part}
        assert _is_behind(pairs, part, door, kept)
        assert part <= there - _reached(pairs, 0, frozenset({door})) or door == 0
        for node, steps in zip(room.nodes, room.steps, strict=True):
            near: set[int] = {door}
            for _ in range(steps - 1):
                near |= {t for s, t in pairs if s in near and t in part}
            assert node.state_id not in near
            assert any(s in near and t == node.state_id for s, t in pairs)
    # Slowly: whatever lies behind any state, and is no run, is in a fold.
    inside = {node.state_id for room in rooms for node in room.nodes}
    for door in there - {0}:
        behind = frozenset(there - _reached(pairs, 0, frozenset({door})) - {door})
        if len(behind) >= FEWEST and _is_behind(pairs, behind, door, kept):
            linked = _reached(pairs | {(t, s) for s, t in pairs}, min(behind), frozenset({door}))
            degree = [sum(t == state for _, t in pairs) for state in behind]
            degree += [sum(s == state for s, _ in pairs) for state in behind]
            if linked >= behind and max(degree) > 1:
                assert behind <= inside


def test_a_room_is_no_larger_than_can_be_read_and_its_parts_are_rooms(
    monkeypatch: pytest.MonkeyPatch,
):
    # Behind 1 are seven states; behind 3 are four of them.
    ends = [(0, 1), (1, 2), (2, 3), (3, 4), (3, 5), (4, 6), (5, 6), (6, 3), (6, 7), (7, 3)]
    ends += [(3, 2), (2, 1), (1, 8), (8, 9)]
    graph = _graph(ends, goal=9)
    monkeypatch.setattr(folds_module, "READABLE", 6)
    assert _states(folds_of(graph)) == [[2, 3, 4, 5, 6, 7]]
    monkeypatch.setattr(folds_module, "READABLE", 4)
    assert _states(folds_of(graph)) == [[4, 5, 6, 7]]
    assert _states(folds_of(graph, kept={6})) == []


def _corridors(tmp_path: Path) -> tuple[Store, TaskGraph]:
    store = credited(tmp_path / "s", corridors())
    column = "graphgpo_advantage"
    return store, read_task_graph(store, run_id="r0", iteration=0, task_id="t0", column=column)


def test_a_drawing_holds_every_state_and_transition_once(tmp_path: Path):
    _, graph = _corridors(tmp_path)
    chains = folds_of(graph)
    drawing = draw_part(graph, layers_of(graph), Shading(advantage="a"), chains)
    lengths = sorted(len(states) for states in _states(chains))
    # left 0 to 8, left 10 to 23, right 0 to 8, right 10 to 19 and the pit stands at the end.
    assert lengths == [9, 9, 10, 14]
    drawn = [element["data"]["id"] for element in [*drawing.nodes, *drawing.edges]]
    for key, chain in drawing.folds.items():
        drawn.remove(key)
        drawn += [element["data"]["id"] for element in [*chain["nodes"], *chain["edges"]]]
    assert sorted(drawn) == sorted(
        [*(node_key(node.state_id) for node in graph.nodes)]
        + [edge_key(edge.ends) for edge in graph.edges]
    )
    there = {element["data"]["id"] for element in drawing.nodes}
    for edge in drawing.edges:
        assert {edge["data"]["source"], edge["data"]["target"]} <= there
    assert len(outside(graph, chains)) == len(drawing.edges)


def test_the_key_of_a_chain_is_no_state_and_says_its_first(tmp_path: Path):
    _, graph = _corridors(tmp_path)
    chain = folds_of(graph)[0]
    assert fold_key(chain.first) == f"c{chain.first}"
    assert parse_key(fold_key(chain.first)) is None


def test_an_open_chain_takes_a_column_for_each_of_its_states(tmp_path: Path):
    _, graph = _corridors(tmp_path)
    chains = folds_of(graph)
    drawing = draw_part(graph, layers_of(graph), Shading(advantage="a"), chains)
    places = {node["data"]["id"]: node["position"] for node in drawing.nodes}
    for key, chain in drawing.folds.items():
        xs = [node["position"]["x"] for node in chain["nodes"]]
        assert xs[0] == places[key]["x"]
        assert xs[-1] - xs[0] == pytest.approx(chain["width"])
        assert len({round(b - a) for a, b in pairwise(xs)}) == 1
        assert {node["position"]["y"] for node in chain["nodes"]} == {places[key]["y"]}


def test_a_chain_says_its_states_distances_and_the_range_of_its_credit(tmp_path: Path):
    _, graph = _corridors(tmp_path)
    chains = folds_of(graph)
    drawing = draw_part(graph, layers_of(graph), Shading(advantage="a"), chains)
    for chain in chains:
        (node,) = [n for n in drawing.nodes if n["data"]["id"] == fold_key(chain.first)]
        states, distance, credit = node["data"]["label"].split("\n")
        assert states == f"{len(chain.nodes)} states {chain.first} → {chain.last}"
        far = [node.goal_distance for node in chain.nodes]
        assert far[0] == far[-1] or distance == f"{far[0]:g} → {far[-1]:g} to go"
        values = [edge.advantage or 0.0 for edge in chain.edges]
        ends = dict.fromkeys(f"{value:+.2f}" for value in (min(values), max(values)))
        assert credit == " to ".join(ends)
