"""GRAFT on worlds small enough to solve by hand."""

from itertools import islice
from typing import Any

import numpy as np
import pytest

from graphcredit.credit.estimators.graft import Graft, goal_chance, means_of_walks
from graphcredit.credit.iteration.assemble import assemble
from tests.worlds import step_table, trajectory

Row = dict[str, Any]


def credit(rows: list[Row], part: str, **options: Any) -> dict[tuple[str, str, int], float]:
    """Return {(task, trajectory, step): a part of GRAFT's credit}."""
    assembly = assemble(step_table(rows))
    values = Graft(**options).assign(assembly.batch)[part].tolist()
    found = [rows[row] for row in assembly.steps.row.tolist()]
    keys = [(row["task_id"], row["trajectory_id"], row["step_index"]) for row in found]
    return dict(zip(keys, values, strict=True))


def in_order(rows: list[Row], part: str, **options: Any) -> list[float]:
    return list(credit([{"task_id": "t0"} | row for row in rows], part, **options).values())


def test_values_gains_and_what_lies_ahead_of_a_fork():
    """γ = λ = 1/2. M is won once and lost twice; N is won.

    V(M) = ½ · 1/3 = 1/6, V(N) = 1/2, V(S) = ½ · (3/4 · 1/6 + 1/4 · 1/2) = 1/8.
    δ: S→M 1/12 - 1/8 = -1/24, S→N 1/4 - 1/8 = 1/8, M→goal 1/3, M→failure -1/6, N→goal 0.
    Ahead of S→M lies the mean of 1/3 and -1/6, 1/12, times γλ = 1/4: -1/24 + 1/48 = -1/48.
    """
    rows = [
        *trajectory("p", "S a M b won", success=True),
        *trajectory("q", "S a M c X"),
        *trajectory("r", "S a M c X"),
        *trajectory("s", "S d N b won", success=True),
    ]
    halves = {"gamma": 0.5, "gae_lambda": 0.5, "normalize": "none"}
    worth = [-1 / 48, 1 / 3, -1 / 48, -1 / 6, -1 / 48, -1 / 6, 1 / 8, 0]
    assert in_order(rows, "step_reward", **halves) == pytest.approx(worth)
    # The means: of S by edges (-1/48 + 6/48) / 2 = 5/96, by steps (-3/48 + 6/48) / 4 = 1/64;
    # of M by edges (1/3 - 1/6) / 2 = 1/12, by steps 0.
    by_edges = [-7 / 96, 1 / 4, -7 / 96, -1 / 4, -7 / 96, -1 / 4, 7 / 96, 0]
    assert in_order(rows, "step_advantage", **halves) == pytest.approx(by_edges)
    by_steps = [-7 / 192, 1 / 3, -7 / 192, -1 / 6, -7 / 192, -1 / 6, 7 / 64, 0]
    found = in_order(rows, "step_advantage", edge_counts="steps", **halves)
    assert found == pytest.approx(by_steps)
    # Two edges are ±1/√2 whatever their step rewards.
    found = in_order(rows, "step_advantage", gamma=0.5, gae_lambda=0.5)
    assert found == pytest.approx(np.sqrt(0.5) * np.sign(by_edges), abs=2e-5)


def test_the_value_of_a_long_chain_and_of_a_loop_that_is_seldom_left():
    """A chain of 1,000 edges; and a loop of two nodes, left for the goal once in 1,000 rounds."""
    source = np.append(np.arange(1000), [1001, 1002, 1002])
    target = np.append(np.arange(1, 1001), [1002, 1001, 1003])
    found = goal_chance(
        source=source,
        target=target,
        chance=0.99 * np.append(np.ones(1001), [0.999, 0.001]),
        num_nodes=1004,
        goals=np.array([1000, 1003]),
    )
    last = 0.00099 / (1 - 0.99**2 * 0.999)
    expected = [*0.99 ** np.arange(1000, -1, -1), 0.99 * last, last, 1]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_numbers_of_walks_without_bound():
    """From each of 50 nodes to all others: 49^1000 walks. Node 50 leads there, 51 is left by none.

    The edge from 50 is worth 7, the others 1.
    """
    source, target = np.nonzero(~np.eye(50, dtype=bool))
    source, target = np.append(source, [50, 0]), np.append(target, [0, 51])
    value = np.append(np.ones(50 * 49), [7.0, 1.0])
    found = np.array(list(islice(means_of_walks(source, target, value, 52), 1000)))
    assert found.shape == (1000, 52)
    assert found[0, 50] == pytest.approx(7)
    np.testing.assert_allclose(found[1:, :51], 1)
    assert not found[:, 51].any()
