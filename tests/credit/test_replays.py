"""The audit's numbers of replayed decisions, by hand."""

import json
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphcredit.credit.audit.chance import chance_to_matter, expected_by_chance
from graphcredit.credit.audit.replays import ReplayJudgement, judge_replay
from graphcredit.credit.audit.run import audit
from graphcredit.store import Store
from graphcredit.store.schema import CREDIT_COLUMNS, REPLAY_COLUMNS, estimator_column
from tests.store.whole_store import replay_key, replay_row, write_rows
from tests.worlds import trajectory, worked_example, write_store

CREDIT = (1.0, 2.0, 3.0, 4.0, 0.0, -1.0, -2.0, 1.0)
"""Of the steps of x (4), y (2) and z (2)."""
Q = (0.7, 0.5, 0.8, 0.9, 0.2, 0.5, 0.5, 0.4)
V = (0.2, 0.4, 0.2, 0.2, 0.7, 0.5, 0.4, 0.5)


def played(step: dict[str, Any], q: float, v: float, **values: Any) -> dict[str, Any]:
    numbers = {"q": q, "q_plays": 10, "v": v, "v_plays": 10, "advantage": q - v}
    key = (step["trajectory_id"], step["step_index"], step["action"])
    return replay_row(*key, **numbers, advantage_se=0.2, **values)


def replayed_store(root: Path, *more: dict[str, Any]) -> Store:
    """Return the worked example with credit and a replay by hand, and more rows of replay."""
    steps = worked_example()
    store = write_store(root, steps)
    credit = [
        {"trajectory_id": s["trajectory_id"], "step_index": s["step_index"], "grpo_advantage": c}
        for s, c in zip(steps, CREDIT, strict=True)
    ]
    path = store.credit_dir("r0", 0) / "w0-000000.parquet"
    write_rows(path, (*CREDIT_COLUMNS, estimator_column("grpo_advantage")), credit)
    rows = [played(s, q, v) for s, q, v in zip(steps, Q, V, strict=True)]
    write_rows(store.replay_dir("r0", 0) / "a-0.parquet", REPLAY_COLUMNS, [*rows, *more])
    return store


def test_the_numbers_are_those_by_hand(tmp_path: Path):
    other = {"settings": '{"num_plays": 2, "policy": "other"}', "policy": "other"}
    failed = replay_key("x", 0, "a") | other | {"failure": "step 0: another state"}
    found = audit(replayed_store(tmp_path / "s", failed)).replays
    judged, nothing = sorted(found, key=lambda each: -each.num_decisions)
    assert (judged.num_decisions, judged.num_failed, judged.num_tasks) == (8, 0, 1)
    assert judged.name == "p, 4 plays"
    # |Q - V| is above 0.4 at x 0, x 2, x 3 and y 0.
    assert judged.matters is not None
    assert (judged.matters.value, judged.matters.low) == (0.5, None)
    # Squares 1.38 less noise 3.28 / 9, over 8 decisions.
    assert judged.spread == pytest.approx(((1.38 - 3.28 / 9) / 8) ** 0.5)
    (column,) = judged.columns
    assert (column.column, column.num_decisions, column.num_groups) == ("grpo_advantage", 8, 1)
    # Ranks with a tie each; their squared differences sum up to 28.
    assert column.rank_correlation is not None
    assert column.rank_correlation.value == pytest.approx(55 / 83)
    # Right at x 0, x 2 and x 3; y 0 has no credit.
    assert column.sign_agreement is not None
    assert (column.num_deciding, column.sign_agreement.value) == (4, 0.75)
    assert (nothing.num_decisions, nothing.num_failed, nothing.matters) == (0, 1, None)
    assert nothing.lines() == ["no decision was replayed; 1 not reproducible"]


def test_the_report_has_it_in_words_and_as_json(tmp_path: Path):
    store = replayed_store(tmp_path / "s")
    report = audit(store)
    lines = report.replays[0].lines()
    assert lines[0] == ("50.0% of 8 decisions in 1 task matter: |Q - V| is above 2 standard errors")
    assert "rank correlation with Q - V 0.66, right sign where it matters 0.75" in lines[-1]
    (found,) = json.loads(json.dumps(report.as_json()))["replays"]
    assert found["matters"] == {"value": 0.5, "low": None, "high": None}
    assert found["columns"][0]["num_deciding"] == 4
    settings = '{"num_plays": 4, "policy": "p"}'
    assert judge_replay(store, "r0", 0, settings) == report.replays[0]
    assert judge_replay(store, "r0", 0, "{}") is None


def test_a_store_without_a_replay_has_no_judgement(tmp_path: Path):
    report = audit(write_store(tmp_path / "s", worked_example()))
    assert (report.replays, report.as_json()["replays"]) == ((), [])


def test_intervals_draw_tasks(tmp_path: Path):
    """All decisions of one task matter and none of the other: the share may be anything."""
    steps = [
        *trajectory("x", "A a B a C a D", task_id="t0"),
        *trajectory("y", "A a B", task_id="t1"),
    ]
    store = write_store(tmp_path / "s", steps)
    rows = [
        played(step, q, 0.2) | {"task_id": step["task_id"]}
        for step, q in zip(steps, (0.9, 0.9, 0.9, 0.2), strict=True)
    ]
    write_rows(store.replay_dir("r0", 0) / "a-0.parquet", REPLAY_COLUMNS, rows)
    matters = _judged(store).matters
    assert matters is not None
    assert (matters.value, matters.low, matters.high) == (0.75, 0.0, 1.0)


def _judged(store: Store) -> ReplayJudgement:
    (judged,) = audit(store).replays
    return judged


@pytest.mark.parametrize(("q_plays", "v_plays", "share"), [(3, 4, 0.3), (8, 8, 0.5), (5, 9, 0.95)])
def test_chance_is_the_sum_over_all_outcomes(q_plays: int, v_plays: int, share: float):
    def variance(wins: int, plays: int) -> float:
        p = (wins + 1) / (plays + 2)
        return p * (1 - p) / (plays + 2)

    def weight(wins: int, plays: int) -> float:
        return comb(plays, wins) * share**wins * (1 - share) ** (plays - wins)

    expected = sum(
        weight(a, q_plays) * weight(b, v_plays)
        for a in range(q_plays + 1)
        for b in range(v_plays + 1)
        if abs(a / q_plays - b / v_plays) > 2 * (variance(a, q_plays) + variance(b, v_plays)) ** 0.5
    )
    found = chance_to_matter(q_plays, v_plays, np.array([share, 0.5]))
    assert found[0] == pytest.approx(expected)


def test_two_errors_are_about_one_in_twenty_and_fewer_where_outcomes_are_sure():
    found = chance_to_matter(32, 32, np.array([0.001, 0.1, 0.3, 0.5, 0.9]))
    assert found.max() < 0.065
    assert found[0] < 1e-4
    assert found[3] > 0.02
    assert found[1] == pytest.approx(found[4])


def test_the_expected_share_is_a_mean_over_decisions():
    half = chance_to_matter(10, 10, np.array([0.5]))[0]
    assert expected_by_chance([(10, 10, 0.5, 0.5)]) == pytest.approx(half)
    # An action that ended the episode has no noise: with Q = V, no play differs from it.
    assert expected_by_chance([(10, 10, 0.7, 0.3), (1, 10, 1.0, 0.4)]) == pytest.approx(half / 2)
    assert expected_by_chance([]) == 0.0
