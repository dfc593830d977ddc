"""Where failures left the way that others won on, on walks written by hand."""

from pathlib import Path
from typing import Any

import pytest

from graphcredit.credit.why.recurring import kind_of_call, recurring
from tests.viewer.stores import credited
from tests.worlds import trajectory


def _rows(task: str, won: str, *failed: str) -> list[dict[str, Any]]:
    """Return a winner of a task and its failures, named `task1` and so on, each a walk."""
    num_steps = len(won.split()) // 2
    rewards = [0.0] * (num_steps - 1) + [1.0]
    rows = trajectory(f"{task}0", won, rewards=rewards, success=True, task_id=task)
    for number, walk in enumerate(failed, start=1):
        rows += trajectory(f"{task}{number}", walk, task_id=task)
    return rows


def test_failures_are_clustered_by_where_and_how_they_left(tmp_path: Path):
    rows = [
        # Two leave at b with "x"; one leaves at b with "y 1", another one at a: alone in t.
        *_rows("t", "a 1 b 1 c 1 won", "a 1 b x d 1 e", "a 2 f 1 a 1 b x d", "a 1 b y(1) g"),
        *_rows("u", "a 1 b 1 c 1 won", "a y(2) g", "a 1 b 1 c 2 b 1 c"),
        # Nobody won v; w's failures were nowhere where its winner was.
        *trajectory("v1", "a 1 b", task_id="v"),
        *_rows("w", "a 1 b 1 won", "p 1 q"),
    ]
    shown = recurring(credited(tmp_path / "s", rows, names=("reach",)))
    clusters = [(c.sentence, [m.trajectory_id for m in c.members]) for c in shown.clusters]
    assert clusters == [
        ("2 failed rollouts left with `x`, where 1 rollout went on to win: `b`.", ["t1", "t2"]),
        ("2 failed rollouts of 2 tasks left with `y`.", ["t3", "u1"]),
    ]
    # The later visit of a state counts: t2 came back to a.
    assert [m.step_index for m in shown.clusters[0].members] == [1, 3]
    assert (shown.num_failures, shown.num_alone, shown.num_unwon) == (7, 2, 1)
    assert shown.summary == (
        "Of 7 failed rollouts, 2 left the way of those that won as no other did, and 1 had a "
        "task that nobody won."
    )


def test_a_way_that_winners_took_too_is_said(tmp_path: Path):
    walks = ["a 1 b 1 d", "a 1 b 1 e"]
    rows = [*_rows("t", "a 1 b 1 c", *walks), *_rows("u", "a 1 b 1 c", *walks)]
    rows += trajectory("u9", "a 1 b 2 c", rewards=[0.0, 1.0], success=True, task_id="u")
    shown = recurring(credited(tmp_path / "s", rows, names=("reach",)))
    assert {cluster.sentence for cluster in shown.clusters} == {
        "2 failed rollouts left with `1`, where 1 rollout went on to win by the same action: `b`.",
        "2 failed rollouts left with `1`, where 2 rollouts went on to win, 1 of them by the same "
        "action: `b`.",
    }


def test_those_that_never_left_and_those_that_never_came_are_said(tmp_path: Path):
    rows = [
        *_rows("t", "a 1 b 1 c 1 won", "a 1 b", "a 1 b 1 c", "p 1 q"),
        *_rows("u", "a 1 b 1 won", "a 1 b", "r 1 s"),
    ]
    shown = recurring(credited(tmp_path / "s", rows, names=("reach",)))
    assert [cluster.sentence for cluster in shown.clusters] == [
        "3 failed rollouts of 2 tasks ended while still on the way of those that won.",
        "2 failed rollouts of 2 tasks were never where those that won were.",
    ]
    assert {m.state_id for m in shown.clusters[1].members} == {None}


def test_without_failures_there_is_nothing_to_say(tmp_path: Path):
    shown = recurring(credited(tmp_path / "s", _rows("t", "a 1 b 1 won"), names=("reach",)))
    assert (shown.clusters, shown.summary) == ((), "")


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        ('get_order({"id": 1})', "`get_order`"),
        ("Go to shelf 1", "`go`"),
        ("Thank you for telling me all that", "a message"),
        ("", "a message"),
    ],
)
def test_kinds_of_calls(action: str, kind: str):
    assert kind_of_call(action) == kind
