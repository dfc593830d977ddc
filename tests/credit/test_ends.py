"""What ends are worth to RewardFlow and GraphGPO, by hand, and that wins alone change nothing."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from graphcredit.credit.estimators.ends import best_end
from graphcredit.credit.estimators.graphgpo import GraphGpo
from graphcredit.credit.estimators.rewardflow import RewardFlow
from graphcredit.credit.iteration.assemble import assemble
from tests.credit.strategies import logs
from tests.examples import examples
from tests.worlds import step_table, trajectory

Row = dict[str, Any]


def test_every_end_is_a_goal_worth_what_was_scored_there():
    """Scores 4, 2 and 0 are worth 1, 1/2 and 0. P is two steps from X, and one step from Y."""
    rows = [
        *trajectory("x", "S a P a M b X", rewards=[0, 0, 4]),
        *trajectory("y", "S a P c Y", rewards=[0, 2]),
        *trajectory("z", "S d Z", rewards=[0]),
    ]
    batch = assemble(step_table(rows)).batch
    # S, P, M, X, Y, Z: from P the far end with .7² beats the near one with .7 / 2.
    far = [0.7**3, 0.7**2, 0.7, 1, 1 / 2, 0]
    assert best_end(batch, batch.graph.hop, 0.7) == pytest.approx(far)
    near = [0.4**2 / 2, 0.4 / 2, 0.4, 1, 1 / 2, 0]
    assert best_end(batch, batch.graph.hop, 0.4) == pytest.approx(near)
    found = RewardFlow(gamma=0.4, worth="returns").assign(batch)
    assert found["step_reward"] == pytest.approx([0.12, 0.2, 0.6, 0.12, 0.3, -0.08])
    # λ^c, times the best from there; from Z no end is worth something: λ · .08.
    found = GraphGpo(distance_discount=0.4, success_reward=1.0, worth="returns").assign(batch)
    expected = [0.08, 0.16, 0.4, 0.08, 0.2, 0.4**2 * 0.08]
    assert found["step_reward"] == pytest.approx(expected)
    # Published, there is no goal, and no signal.
    assert not GraphGpo().assign(batch)["step_reward"].any()


def won(rows: list[Row]) -> list[Row]:
    """Return the log with a reward of 1 for a success, and no other."""
    return [row | {"reward": float(row["success"] is True)} for row in rows]


@pytest.mark.parametrize("kind", [RewardFlow, GraphGpo])
@settings(max_examples=examples(60))
@given(rows=logs())
def test_where_returns_say_who_won_they_change_nothing(kind: type[Any], rows: list[Row]):
    batch = assemble(step_table(won(rows))).batch
    published, ours = kind().assign(batch), kind(worth="returns").assign(batch)
    for part, values in published.items():
        np.testing.assert_allclose(ours[part], values, rtol=1e-6, atol=1e-9)
