"""Returns and ends of every kind, and values relative to a group: which changes change nothing."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcredit.credit.estimators.ends import best_end
from graphcredit.credit.estimators.graphgpo import GraphGpo
from graphcredit.credit.estimators.reach import Reach
from graphcredit.credit.estimators.relative import has_spread, relative
from graphcredit.credit.estimators.rewardflow import RewardFlow
from graphcredit.credit.inputs.table import ANALOGIES
from graphcredit.credit.iteration.assemble import assemble
from graphcredit.credit.steps.arrays import Floats
from tests.credit.strategies import logs
from tests.examples import examples
from tests.worlds import step_table, trajectory

Row = dict[str, Any]


def parts(rows: list[Row], **options: Any) -> dict[str, Floats]:
    return Reach(**options).assign(assemble(step_table(rows), inputs=[ANALOGIES]).batch)


def is_last(row: Row) -> bool:
    return row["terminated"] or row["truncated"]


@settings(max_examples=examples(60))
@given(
    rows=logs(),
    scales=st.lists(st.sampled_from([0.01, 1.0, 3.0, 1000.0]), min_size=3, max_size=3),
    shifts=st.lists(st.sampled_from([-5.0, 0.0, 0.25]), min_size=3, max_size=3),
)
def test_returns_of_each_group_may_be_multiplied_and_shifted_at_their_end(
    rows: list[Row], scales: list[float], shifts: list[float]
):
    moved = [
        row | {"reward": scales[group] * (row["reward"] + shifts[group] * is_last(row))}
        for row in rows
        for group in [int(row["task_id"][-1])]
    ]
    before, after = parts(rows), parts(moved)
    for name in ("outcome", "baseline", "progress", "advantage"):
        np.testing.assert_allclose(after[name], before[name], rtol=1e-6, atol=1e-7, err_msg=name)


def test_a_cost_for_each_step_is_no_shift_and_credits_the_shorter_way():
    short, long = "S a won", "S b M c won"
    rows = [
        step
        for name, walk in (("p", short), ("q", short), ("r", long), ("s", long))
        for step in trajectory(name, walk, success=True)
    ]
    # All win: without costs nothing differs but the time that the long way takes.
    free = parts(rows, normalize="none")
    dear = parts([row | {"reward": -1.0} for row in rows], normalize="none")
    assert dear["advantage"][0] - dear["advantage"][2] > 0.8
    assert abs(free["advantage"][0] - free["advantage"][2]) < 0.4


LAYERS = ("S", "AB", "CD", "XY")
"""States after 0 to 3 steps."""

walks = st.tuples(*(st.tuples(st.sampled_from(layer), st.integers(0, 3)) for layer in LAYERS[1:]))
potentials = st.fixed_dictionaries({state: st.floats(-2, 2) for state in "SABCD"})


@settings(max_examples=examples(60))
@given(walked=st.lists(walks, min_size=2, max_size=8), potential=potentials)
def test_shaping_by_a_potential_changes_nothing_but_for_doubt(
    walked: list[Any], potential: dict[str, float]
):
    """r + Φ(s') - Φ(s), with Φ 0 at the ends: a difference that all returns share.

    What a state is worth that one step alone left is all doubt.
    """
    potential |= dict.fromkeys("XY", 0.0)
    plain: list[Row] = []
    for number, walk in enumerate(walked):
        states = ["S", *(state for state, _ in walk)]
        text = [word for state in states for word in (state, "go")][:-1]
        plain += trajectory(f"t{number}", text, rewards=[float(reward) for _, reward in walk])
    shaped = [
        row | {"reward": row["reward"] + potential[row["next_state"]] - potential[row["state"]]}
        for row in plain
    ]
    before, after = (np.array(parts(rows, doubt=1e-9)["advantage"]) for rows in (plain, shaped))
    times = Counter(row["state"] for row in plain)
    was_left_again = [times[row["state"]] > 1 for row in plain]
    np.testing.assert_allclose(after[was_left_again], before[was_left_again], atol=1e-4)


SCORES = {"apologise": 0.1, "ask": 0.45, "replace": 0.8, "refund": 1.0}


def test_the_higher_the_score_the_more_credit():
    """30 chats with one deciding step, which may lead on by one more: partial success counts."""
    chance = np.random.default_rng(0)
    rows: list[Row] = []
    for number in range(30):
        action = list(SCORES)[number % 4]
        end = f"{action}ed" if chance.random() < 0.5 else f"{action}ed politely"
        rows += trajectory(
            f"t{number:02d}",
            ["complaint", action, end, "bye", "closed"],
            rewards=[0.0, SCORES[action]],
            success=SCORES[action] == 1,
        )
    lost = [row | {"success": False} if row.get("success") else row for row in rows]
    for shown in (rows, lost):
        credit = parts(shown)["advantage"][::2]
        means = [credit[place::4].mean() for place in range(4)]
        assert means == sorted(means)
        assert means[1] < 0 < means[2]
        gaps = np.diff(means)
        assert gaps[0] == pytest.approx(gaps[1], rel=0.05)


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


ONE_GROUP = np.zeros(3, np.int64)


def test_values_that_differ_by_rounding_alone_are_equal():
    values = np.array([0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1, 0.6])
    assert len(set(values.tolist())) > 1, "precondition: rounding made them differ"
    assert relative(values, ONE_GROUP, 1).tolist() == [0.0, 0.0, 0.0]
    assert not has_spread(values, ONE_GROUP, 1)[0]


def test_a_value_at_the_mean_gives_zero():
    values = np.array([0.1, 0.2, 0.3])
    assert values.sum() / 3 != 0.2, "precondition: rounding moves the mean"
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        assert relative(values[order], ONE_GROUP, 1)[order.index(1)] == 0.0


def test_a_small_difference_between_large_values_counts():
    values = relative(np.array([1e9, 1e9 + 0.5, 1e9 + 1.0]), ONE_GROUP, 1)
    np.testing.assert_allclose(values, [-1, 0, 1], atol=1e-5)
