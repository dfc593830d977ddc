"""A small version of the tables of credit quality, and what their rows are made from."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from experiments.credit_quality import judge as judging
from experiments.credit_quality import worlds
from experiments.credit_quality.judge import Condition, estimators_of, judge, made_by, write_steps
from experiments.credit_quality.report import averages
from experiments.credit_quality.worlds import ITERATION, QUESTIONS, TEXT_GAMES, WORLDS, play
from graphcredit.credit.audit.run import audit
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import create_store, read_steps
from tests.credit.audit_worlds import making_only
from tests.worlds import trajectory, write_store

FLOORS: Mapping[str, tuple[float, float]] = {
    "grpo": (-0.1, -0.3),
    "rloo": (-0.1, -0.3),
    "gigpo": (0.25, 0.05),
    "hgpo": (0.25, 0.0),
    "rewardflow": (0.55, 0.6),
    "graphgpo": (0.5, 0.55),
    "spo3": (0.3, 0.0),
    "g2po": (0.35, 0.4),
    "sapo": (0.1, 0.0),
    "reach": (0.2, 0.1),
    "reach step": (0.85, 0.85),
}
"""Least rank correlation with progress, over all steps and over those of failures.

The advantage of `reach` is no progress: it is what the group's own policy earned more by a step
than without it, and where trajectories did not meet, what they ended with. Whoever asks for
progress has `reach_progress`, its step part here.
"""


def _condition(log: Path, world: str, lists: str = "exact") -> Condition:
    return Condition(log=log, world=world, lists=lists, games=())


def _assert_above_floors(rows: pl.DataFrame) -> None:
    for statistic, place in (("over_all", 0), ("over_failed", 1)):
        for (name, part, _), average in averages(rows, statistic).items():
            column = name if part == "total" else f"{name} {part}"
            if part == "total" or column in FLOORS:
                assert average.value >= FLOORS.get(column, (0.0, 0.0))[place], (column, statistic)


@pytest.mark.play
def test_credit_follows_the_truth_in_a_few_games(
    tmp_path: Path, games_dir: Path, monkeypatch: pytest.MonkeyPatch
):
    one_of_each = replace(
        WORLDS["textworld"], games=(*TEXT_GAMES[:4], *TEXT_GAMES[60:64]), num_tasks=8, epsilon=0.7
    )
    for module in (worlds, judging):
        monkeypatch.setattr(module, "WORLDS", {"textworld": one_of_each})
    log = create_store(tmp_path / "log")
    played = play(log, "textworld", games_dir=games_dir)
    rows = judge(_condition(log.root, "textworld"))
    assert set(rows["game"]) == set(played) == set(one_of_each.games)
    _assert_above_floors(rows)


def test_credit_follows_the_truth_in_a_few_questions_and_the_audit_says_the_same(tmp_path: Path):
    log = create_store(tmp_path / "log")
    assert play(log, "search", num_tasks=8) == list(QUESTIONS[:8])
    condition = _condition(log.root, "search")
    rows = judge(condition)
    _assert_above_floors(rows.filter(estimator="sapo"))
    store = write_steps(condition, tmp_path / "steps")
    assign_credit(store, CreditSettings(estimators=estimators_of("search")))
    with making_only():
        numbers = audit(store).numbers
    titles = {
        "over_all": "rank correlation with true progress",
        "over_failed": "rank correlation in failures",
        "sign_agreement": "sign agreement with true progress",
        "silent_share": "steps without a signal",
    }

    def label(name: str, part: str) -> str:
        step = "progress" if name == "reach" else "step"
        return name if part == "total" else f"{name} {step}"

    for statistic, title in titles.items():
        expected = {
            label(name, part): average.value
            for (name, part, _), average in averages(rows, statistic).items()
        }
        assert numbers[title] == pytest.approx(expected), statistic


def test_games_are_of_every_kind_and_each_is_there_once():
    kinds = [game.partition("-")[0] for game in TEXT_GAMES]
    assert {kind: kinds.count(kind) for kind in kinds} == dict.fromkeys(
        ("custom", "treasure", "coin", "cooking"), 40
    )
    assert len(set(TEXT_GAMES)) == WORLDS["textworld"].num_tasks
    assert len(set(QUESTIONS)) == WORLDS["search"].num_tasks


def test_steps_do_not_depend_on_how_the_log_was_played(tmp_path: Path):
    """One log at a stroke; the other in another order, with a rollout that was begun again."""
    one = [
        *trajectory("t0:0", "A a B b C", rewards=[0, 1], success=True),
        *trajectory("t0:1", "A b A c D"),
    ]
    other = [
        *trajectory("t0:1", "A b A", success=None),
        *trajectory("t0:1.1", "A b A c D"),
        *trajectory("t0:0", "A a B b C", rewards=[0, 1], success=True),
    ]
    steps = []
    for name, rows in (("one", one), ("other", other)):
        condition = _condition(tmp_path / name, "sokoban")
        write_store(condition.log, rows, run_id=condition.run_id, iteration=ITERATION)
        (table,) = read_steps(write_steps(condition, tmp_path / f"{name}-steps"))
        steps.append(table)
    assert steps[0].equals(steps[1])
    assert steps[0]["trajectory_id"].to_pylist() == ["t0:0"] * 2 + ["t0:1"] * 2
    logged = steps[0]["logged_at"].to_pylist()
    assert logged == sorted(logged)


def test_lists_are_left_out_or_all_alike(tmp_path: Path):
    log = create_store(tmp_path / "log")
    assert len(play(log, "sokoban", num_tasks=2)) == 2
    conditions = [_condition(log.root, "sokoban", name) for name in ("exact", "none", "constant")]
    assert len({made_by(condition) for condition in conditions}) == 3
    exact, none, constant = (
        [
            row
            for table in read_steps(write_steps(condition, tmp_path / condition.lists))
            for row in table["admissible_actions"].to_pylist()
        ]
        for condition in conditions
    )
    assert none == [None] * len(exact)
    assert {tuple(sorted(of)) for of in constant} == {("down", "left", "right", "up")}
    assert min(map(len, exact)) < 4
