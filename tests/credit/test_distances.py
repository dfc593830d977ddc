"""Distances to the nearest goal, against igraph's search from one node beyond all goals."""

import subprocess
import sys

import igraph
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.credit.graph.distances import DistanceFinder

NODES = st.integers(0, 7)
WEIGHTS = st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0, 1e24, np.inf])


def _by_igraph(edges: list[tuple[int, int, float]], goals: list[tuple[int, float]]) -> list[float]:
    pairs = [(source, target) for source, target, _ in edges] + [(goal, 8) for goal, _ in goals]
    weights = [weight for *_, weight in edges] + [cost for _, cost in goals]
    graph = igraph.Graph(9, pairs, directed=True)
    return graph.distances(source=[8], mode="in", weights=weights)[0][:8]


@given(
    edges=st.lists(st.tuples(NODES, NODES, WEIGHTS), max_size=30),
    goals=st.lists(st.tuples(NODES, WEIGHTS), max_size=4),
)
def test_distances_are_those_of_igraph(
    edges: list[tuple[int, int, float]], goals: list[tuple[int, float]]
):
    source, target = (np.array([edge[n] for edge in edges], np.int64) for n in (0, 1))
    find = DistanceFinder(
        source,
        target,
        8,
        np.array([goal for goal, _ in goals], np.int64),
        np.array([cost for _, cost in goals], np.float64),
    )
    found = find(np.array([weight for *_, weight in edges], np.float64))
    assert found.tolist() == _by_igraph(edges, goals)


def test_a_long_way_is_followed_to_its_end():
    steps = np.arange(3000)
    find = DistanceFinder(steps + 1, steps, 3001, np.array([0]))
    assert find(np.full(3000, 0.5))[-1] == 1500.0
    assert find(np.full(3000, 2.0))[-1] == 6000.0


def test_credit_needs_no_igraph():
    """igraph imports matplotlib where that is installed, which took 0.4 s of a first call."""
    code = (
        "import sys, pyarrow as pa\n"
        "from graphcredit.credit import compute\n"
        "steps = {'task_id': ['t', 't'], 'trajectory_id': ['a', 'b'], 'step_index': [0, 0],\n"
        "    'state': ['S', 'S'], 'next_state': ['G', 'H'], 'action': ['x', 'y'],\n"
        "    'reward': [1.0, 0.0], 'success': [True, False], 'terminated': [True, True],\n"
        "    'truncated': [False] * 2, 'is_action_valid': [True] * 2, 'cost': [1.0, 1.0]}\n"
        "credit = compute(pa.table(steps), estimators='graphgpo,rewardflow')\n"
        "print(credit.num_rows, 'igraph' in sys.modules, 'matplotlib' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("2 False False\n", "")
