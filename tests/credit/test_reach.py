"""Reach on worlds small enough to solve by hand, and what its inputs say of them."""

from typing import Any

import numpy as np
import pytest

from graphcredit.credit.estimators.hidden_state import hidden_share
from graphcredit.credit.estimators.reach import Reach
from graphcredit.credit.inputs.table import INPUT_NAMED
from graphcredit.credit.iteration.assemble import Assembly, assemble
from graphcredit.store.errors import InputError
from tests.worlds import step_table, trajectory

Row = dict[str, Any]


def assembled(rows: list[Row]) -> Assembly:
    inputs = [INPUT_NAMED["least_seen"]]
    return assemble(step_table(rows), inputs=inputs, columns=["terminated"])


def parts(rows: list[Row], **options: Any) -> dict[str, list[float]]:
    """Return each part of the credit, in the order of the steps."""
    found = Reach(**options).assign(assembled(rows).batch)
    return {name: values.tolist() for name, values in found.items()}


def test_the_chances_around_a_fork():
    """κ = 1, H = 2. S is left three times, M twice, N once; M is won once.

    V_1(M) = 1/(2 + 1) = 1/3, V_1(N) = 0, V_2(S) = (1/3 + 1/3 + 0)/(3 + 1) = 1/6. a leads to M.
    p = (1 + 1/2) / (3 + 1) = 3/8, so √(H / (p (1 - p))) = 8 √(2/15). Nothing is contradicted,
    and a agreed with itself once: λ⁵ = 2/(4 + 1).
    """
    rows = [
        *trajectory("p", "S a M b won", success=True),
        *trajectory("q", "S a M c X"),
        *trajectory("r", "S d N c X"),
    ]
    found = parts(rows, doubt=1.0)
    credit = np.array([1 / 3 - 1 / 6, 1 - 1 / 3, 1 / 6, -1 / 3, -1 / 6, 0])
    assert found["step_reward"] == pytest.approx(credit)
    assert found["step_advantage"] == pytest.approx(credit)
    credit[::2] += (2 / 5) ** (1 / 5) * credit[1::2]
    assert found["advantage"] == pytest.approx(credit * 8 * np.sqrt(2 / 15))
    assert parts(rows, doubt=1.0, normalize="none")["advantage"] == pytest.approx(credit)


def test_a_state_has_a_chance_and_a_share_of_it_in_doubt():
    """H = 2: without doubt V(M) = V(S) = 1/2. With κ = 1, V_2(M) = (1 + 0)/(1 + 1 + 1) = 1/3, and
    V_2(S) = 2 · 1/3 / (2 + 1) = 2/9. X was never left."""
    rows = [*trajectory("p", "S a M b won", success=True), *trajectory("q", "S a M c X")]
    batch = assembled(rows).batch
    reach = Reach(doubt=1.0)
    # S, M, X, and the goal.
    assert reach.value(batch).tolist() == pytest.approx([1 / 2, 1 / 2, 0, 1])
    expected = [1 - 4 / 9, 1 - 2 / 3, np.nan, 0]
    assert reach.share_of_doubt(batch).tolist() == pytest.approx(expected, nan_ok=True)


def test_a_step_of_chance_has_the_mean_of_its_outcomes():
    """Action a leads from S to M, where the goal is, and to X: Q = V_1(M) / 2 = 1/4 with κ = 1."""
    rows = [*trajectory("p", "S a M b won", success=True), *trajectory("q", "S a X b Y")]
    found = parts(rows, doubt=1.0)
    before = (1 / 2 + 0) / (2 + 1)
    assert found["step_reward"][0] == pytest.approx(1 / 2 - before)
    assert found["step_reward"][2] == pytest.approx(0 - before)
    assert found["step_advantage"][0] == found["step_advantage"][2] == pytest.approx(1 / 4 - before)


def test_who_found_something_rare_is_credited_where_nobody_won():
    rows = [
        *trajectory("p", "hall a hall a hall"),
        *trajectory("q", "hall a hall a hall"),
        *trajectory("r", "hall a cellar a hall"),
    ]
    found = parts(rows)["step_reward"]
    assert max(found) == found[4] > 0
    assert found[0] == found[2] < 0


def test_a_rare_word_is_news_and_a_rare_state_of_common_words_is_not():
    """All three states have been seen once; only `gold` is a word that was seen once."""
    rows = [
        row | {"state": state, "next_state": following}
        for row, (state, following) in zip(
            trajectory("p", "A a B a C a D"),
            [("lamp on", "lamp off"), ("lamp off", "door on"), ("door on", "door gold")],
            strict=True,
        )
    ]
    least = assembled(rows).batch.least_seen
    assert least is not None
    assert least.tolist() == [1, 1, 1, 1]  # the pair of words: each state is seen once
    twice = rows + [row | {"trajectory_id": "q"} for row in rows[:2]]
    twice[-1] = twice[-1] | {"truncated": True, "success": False}
    least = assembled(twice).batch.least_seen
    assert least is not None
    assert least.tolist() == [2, 2, 2, 1]


def test_lists_of_actions_say_what_is_new_where_they_tell_states_apart():
    """The key was never used: where it can be used is new, though its text is seen twice."""
    lists = {"A": ["go", "look"], "B": ["go", "unlock"], "C": ["go", "wait"]}
    rows = [
        row | {"admissible_actions": lists[row["state"]]}
        for name in "pq"
        for row in trajectory(name, "A go B go C wait A")
    ]
    least = assembled(rows).batch.least_seen
    assert least is not None
    assert least.tolist() == [0, 0, 2]  # look and unlock were never taken, wait twice


def test_a_lost_episode_ends_without_a_chance():
    rows = trajectory("p", "A a trap")
    lost = [rows[0] | {"terminated": True, "truncated": False}]
    assert parts(lost)["step_reward"][0] < 0
    assert parts(lost) == parts(rows)  # no step remains: it is the same where it was cut


def hidden_of(*walks: str) -> float:
    rows = [row for number, walk in enumerate(walks) for row in trajectory(f"t{number}", walk)]
    (found,) = hidden_share(assembled(rows).batch)
    return float(found)


def test_states_that_hide_where_they_are_are_found_out():
    """`hall` is two places. From A it leads to B, from B to A: what came before decides."""
    walk = "A a hall a B a hall a A a hall a B a hall a A"
    # Of the 4 halls of the other one, 2 led to the same, and all of those with a like history.
    # A and B led both to the hall: 2 choices without a contradiction.
    assert hidden_of(walk, walk) == pytest.approx((2 + 8 * (1 - 1 / 2)) / (4 + 2 + 8 * (1 - 1 / 2)))


def test_what_was_decided_several_steps_before_is_found_out():
    """A lever at the start decides where the hall leads to; two rooms look alike between them."""
    up = "S up R go R go R go hall go Q"
    down = "S down R go R go R go hall go X"
    # 4 steps in the hall: of 3 others, 1 led to the same; the one of a like history did. S is no
    # contradiction. R leads to R or the hall: of 9 others 6 or 3 agree, and the time tells which.
    told = 4 * (1 - 1 / 3) + 4 * (2 * (1 - 6 / 9) + (1 - 3 / 9))
    assert hidden_of(up, up, down, down) == pytest.approx((2 + told) / (4 + told + 2))


def test_a_group_without_contradictions_hides_little():
    """8 choices of two trajectories agree."""
    walk = " a ".join("ABCDEFGHI")
    assert hidden_of(walk, walk) == pytest.approx(2 / (4 + 8))
    assert hidden_of(walk) == pytest.approx(2 / 4)


def test_chance_is_not_taken_for_something_hidden():
    rng = np.random.default_rng(0)
    walks = [
        " a ".join(["S", *(f"{x} a hub" for x in rng.choice(["A", "B"], 200)), "S"])
        for _ in range(4)
    ]
    assert hidden_of(*walks) < 0.05


def test_what_reach_reads_must_be_there():
    batch = assemble(step_table(trajectory("p", "A a B")), columns=["terminated"]).batch
    with pytest.raises(InputError, match="assemble the batch with least_seen"):
        Reach().assign(batch)
