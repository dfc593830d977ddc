"""Distances to the nearest goal, against igraph's search from one node beyond all goals."""

import subprocess
import sys
from pathlib import Path

import igraph
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.credit.graph import distances
from graphcredit.credit.graph.distances import DistanceFinder
from tests.worlds import step_table, worked_example

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
    rounds=st.sampled_from([0, 1, 1000]),
)
def test_distances_are_those_of_igraph(
    edges: list[tuple[int, int, float]], goals: list[tuple[int, float]], rounds: int
):
    source, target = (np.array([edge[n] for edge in edges], np.int64) for n in (0, 1))
    find = DistanceFinder(
        source,
        target,
        8,
        np.array([goal for goal, _ in goals], np.int64),
        np.array([cost for _, cost in goals], np.float64),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distances, "_ROUNDS", rounds)
        found = find(np.array([weight for *_, weight in edges], np.float64))
    assert found.tolist() == _by_igraph(edges, goals)


def test_a_long_way_is_followed_to_its_end():
    steps = np.arange(3000)
    find = DistanceFinder(steps + 1, steps, 3001, np.array([0]))
    assert find(np.full(3000, 0.5))[-1] == 1500.0
    assert find(np.full(3000, 2.0))[-1] == 6000.0


def test_credit_imports_neither_igraph_nor_pandas(tmp_path: Path):
    """igraph imports matplotlib; pyarrow imports pandas to ask whether it is involved.

    Each took 0.3 to 0.4 s of a first call. `pyarrow.array` and `to_numpy` are such calls.
    """
    pq.write_table(step_table(worked_example()), tmp_path / "steps.parquet")
    code = (
        "import sys\n"
        "from pyarrow.parquet import ParquetFile\n"
        "from graphcredit import compute\n"
        "names = 'grpo,rloo,gigpo,hgpo,rewardflow,graphgpo,spo3,g2po'\n"
        "credit = compute(ParquetFile(sys.argv[1]).read(), estimators=names)\n"
        "print(credit.num_rows, {'igraph', 'matplotlib', 'pandas'} & sys.modules.keys())"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "steps.parquet")]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("8 set()\n", "")
