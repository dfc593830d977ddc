"""Runs of states with one way in and one way out are one node of a large graph."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.store import Store
from graphcredit.viewer.graph import chains as chains_module
from graphcredit.viewer.graph.chains import FEWEST, StateChain, chains_of, folded, outside
from graphcredit.viewer.graph.cytoscape import draw_part
from graphcredit.viewer.graph.keys import chain_key, edge_key, node_key, parse_key
from graphcredit.viewer.graph.layout import layers_of
from graphcredit.viewer.graph.shading import Shading
from graphcredit.viewer.graph.task_graph import TaskGraph, read_task_graph
from tests.viewer.graphs import graph_of
from tests.viewer.stores import corridors, credited


@pytest.fixture(autouse=True)
def fold_small_graphs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(chains_module, "READABLE", 0)


def _graph(ends: list[tuple[int, int]], goal: int | None = None) -> TaskGraph:
    return graph_of("0", *(f"{source} {target}" for source, target in ends), goal=goal)


def _states(chains: list[StateChain]) -> list[list[int]]:
    return [[node.state_id for node in chain.nodes] for chain in chains]


def test_a_run_between_two_forks_is_one_chain():
    ends = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 5), (5, 4), (4, 0), (4, 4)]
    assert _states(chains_of(_graph(ends))) == [[1, 2, 3]]


@pytest.mark.parametrize(
    "more", [(2, 2), (2, 0), (0, 2)], ids=["a loop", "a second way out", "a second way in"]
)
def test_what_has_another_way_is_in_no_chain(more: tuple[int, int]):
    ends = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]
    assert _states(chains_of(_graph(ends))) == [[1, 2, 3, 4]]
    assert _states(chains_of(_graph([*ends, more]))) == []


def test_start_goal_and_kept_states_are_drawn_themselves():
    ends = [(state, state + 1) for state in range(9)]
    assert _states(chains_of(_graph(ends, goal=5))) == [[1, 2, 3, 4], [6, 7, 8]]
    assert _states(chains_of(_graph(ends), kept={4})) == [[1, 2, 3], [5, 6, 7, 8]]
    assert _states(chains_of(_graph(ends), kept={2, 5})) == [[6, 7, 8]]


def test_a_circle_that_nothing_leads_to_is_no_chain():
    assert _states(chains_of(_graph([(0, 1), (2, 3), (3, 4), (4, 5), (5, 2)]))) == []


def test_a_graph_that_can_be_read_has_no_chains(monkeypatch: pytest.MonkeyPatch):
    graph = _graph([(state, state + 1) for state in range(9)])
    monkeypatch.setattr(chains_module, "READABLE", 10)
    assert chains_of(graph) == []


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=24),
    st.sets(st.integers(0, 12), max_size=3),
)
def test_nothing_is_lost_and_every_longest_run_is_found(
    ends: list[tuple[int, int]], kept: set[int]
):
    graph = _graph(ends)
    chains = chains_of(graph, kept)
    inside = [node.state_id for chain in chains for node in chain.nodes]
    assert len(inside) == len(set(inside))
    assert not {0, *kept} & set(inside)
    pairs = {edge.ends for edge in graph.edges}
    for chain in chains:
        states = [node.state_id for node in chain.nodes]
        assert len(states) >= FEWEST
        for state in states:
            assert sum(target == state for _, target in pairs) == 1
            assert sum(source == state for source, _ in pairs) == 1
        assert [edge.ends for edge in chain.edges] == list(pairwise(states))
    outer = folded(graph, chains)
    assert len(outer.nodes) + len(inside) - len(chains) == len(graph.nodes)
    assert len(outer.edges) + sum(len(chain.edges) for chain in chains) == len(graph.edges)
    # Slowly: a chain is longest if neither neighbour could belong to it.
    for chain in chains:
        (before,) = [source for source, target in pairs if target == chain.first]
        (behind,) = [target for source, target in pairs if source == chain.last]
        for state in (before, behind):
            one = sum(t == state for _, t in pairs) == sum(s == state for s, _ in pairs) == 1
            assert not one or state in {0, *kept} or (state, state) in pairs


def _corridors(tmp_path: Path) -> tuple[Store, TaskGraph]:
    store = credited(tmp_path / "s", corridors())
    column = "graphgpo_advantage"
    return store, read_task_graph(store, run_id="r0", iteration=0, task_id="t0", column=column)


def test_a_drawing_holds_every_state_and_transition_once(tmp_path: Path):
    _, graph = _corridors(tmp_path)
    chains = chains_of(graph)
    drawing = draw_part(graph, layers_of(graph), Shading(advantage="a"), chains)
    rooms = sorted(len(states) for states in _states(chains))
    # left 0 to 8, left 10 to 23, right 0 to 8, right 10 to 19 and the pit stands at the end.
    assert rooms == [9, 9, 10, 14]
    drawn = [element["data"]["id"] for element in [*drawing.nodes, *drawing.edges]]
    for key, chain in drawing.chains.items():
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
    chain = chains_of(graph)[0]
    assert chain_key(chain.first) == f"c{chain.first}"
    assert parse_key(chain_key(chain.first)) is None


def test_an_open_chain_takes_a_column_for_each_of_its_states(tmp_path: Path):
    _, graph = _corridors(tmp_path)
    chains = chains_of(graph)
    drawing = draw_part(graph, layers_of(graph), Shading(advantage="a"), chains)
    places = {node["data"]["id"]: node["position"] for node in drawing.nodes}
    for key, chain in drawing.chains.items():
        xs = [node["position"]["x"] for node in chain["nodes"]]
        assert xs[0] == places[key]["x"]
        assert xs[-1] - xs[0] == pytest.approx(chain["width"])
        assert len({round(b - a) for a, b in pairwise(xs)}) == 1
        assert {node["position"]["y"] for node in chain["nodes"]} == {places[key]["y"]}


def test_a_chain_says_its_states_distances_and_the_range_of_its_credit(tmp_path: Path):
    _, graph = _corridors(tmp_path)
    chains = chains_of(graph)
    drawing = draw_part(graph, layers_of(graph), Shading(advantage="a"), chains)
    for chain in chains:
        (node,) = [n for n in drawing.nodes if n["data"]["id"] == chain_key(chain.first)]
        states, distance, credit = node["data"]["label"].split("\n")
        assert states == f"{len(chain.nodes)} states {chain.first} → {chain.last}"
        far = [node.goal_distance for node in chain.nodes]
        assert far[0] == far[-1] or distance == f"{far[0]:g} → {far[-1]:g} to go"
        values = [edge.advantage or 0.0 for edge in chain.edges]
        ends = dict.fromkeys(f"{value:+.2f}" for value in (min(values), max(values)))
        assert credit == " to ".join(ends)
