"""A small version of the table of credit quality, and the arithmetic of the large one."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest

from experiments.credit_quality import worlds
from experiments.credit_quality.averages import averages, differences, mean
from experiments.credit_quality.conditions import BASE, Condition, conditions
from experiments.credit_quality.games import (
    DEVELOPMENT,
    FIRST_HELD_OUT_SEED,
    GAMES,
    HELD_OUT,
    KINDS,
    by_kind,
    few,
)
from experiments.credit_quality.judge import STATISTICS, estimators_of, judge
from experiments.credit_quality.logs import JUDGED, play, write_steps
from experiments.credit_quality.report import first_table
from graphcredit.credit.audit.run import audit
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import create_store, read_steps
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
    "reach": (0.45, 0.4),
}
"""Least rank correlation of the advantage over all steps and over those of failures."""


def _assert_above_floors(rows: pl.DataFrame) -> None:
    found = averages(rows).filter(part="total")
    for name, over_all, over_failed in found.select(
        "estimator", "over_all", "over_failed"
    ).iter_rows():
        least, least_failed = FLOORS.get(name, (0.0, 0.0))
        assert over_all >= least, name
        assert over_failed >= least_failed, name


@pytest.mark.slow
@pytest.mark.play
def test_credit_follows_the_truth_in_a_few_games(tmp_path: Path, games_dir: Path):
    log = create_store(tmp_path / "log")
    games = few(DEVELOPMENT, 1)
    play(log, "textworld", games, epsilons=[0.7], group_size=8, games_dir=games_dir)
    rows = judge(log, Condition(epsilon=0.7))
    assert set(rows["game"]) == set(games)
    assert set(rows["num_trajectories"]) == {8}
    _assert_above_floors(rows)


def test_credit_follows_the_truth_in_a_few_questions(tmp_path: Path):
    log = create_store(tmp_path / "log")
    play(log, "search", few(GAMES["development"]["search"], 4), epsilons=[0.5], group_size=8)
    rows = judge(log, Condition(environment="search", epsilon=0.5))
    assert "sapo" in set(rows["estimator"])
    _assert_above_floors(rows.filter(estimator="sapo"))


def test_the_audit_of_a_store_says_the_same(tmp_path: Path):
    log = create_store(tmp_path / "log")
    play(log, "search", few(GAMES["development"]["search"], 2), epsilons=[0.5], group_size=8)
    condition = Condition(environment="search", epsilon=0.5)
    found = averages(judge(log, condition))
    store = write_steps(log, condition, tmp_path / "steps")
    assign_credit(store, CreditSettings(estimators=estimators_of(condition)))
    numbers = audit(store).numbers
    titles = {
        "over_all": "rank correlation with true progress",
        "over_failed": "rank correlation in failures",
        "sign_agreement": "sign agreement with true progress",
        "silent_share": "steps without a signal",
    }
    for statistic, title in titles.items():
        expected = {
            row["estimator"] + " step" * (row["part"] == "step"): row[statistic]
            for row in found.to_dicts()
        }
        assert numbers[title] == pytest.approx(expected), statistic


@pytest.mark.play
@pytest.mark.slow
def test_the_plan_of_the_oracle_is_the_shortest(games_dir: Path):
    from experiments.credit_quality.oracle import examine

    verdicts = [v for game in few(DEVELOPMENT, 1) for v in examine(game, games_dir)]
    assert len(verdicts) >= 8
    assert [v.distance for v in verdicts] == [v.shortest for v in verdicts]


def test_the_two_sets_of_games_share_none():
    def seed(game: str) -> int:
        return int(game.rpartition("-s")[2])

    assert max(map(seed, DEVELOPMENT)) < FIRST_HELD_OUT_SEED <= min(map(seed, HELD_OUT))
    for games in (DEVELOPMENT, HELD_OUT):
        assert len(set(games)) == len(games)
        assert {kind: len(same) >= 30 for kind, same in by_kind(games).items()} == dict.fromkeys(
            KINDS, True
        )
    sizes = [{game.rpartition("-s")[0] for game in games} for games in (DEVELOPMENT, HELD_OUT)]
    assert len(sizes[1] - sizes[0]) == len(KINDS)


def test_conditions_have_names_of_their_own():
    assert conditions()[0] == BASE
    assert len({condition.name for condition in conditions()}) == len(conditions())


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
    tables = []
    for name, rows in (("one", one), ("other", other)):
        log = write_store(tmp_path / name, rows, run_id=BASE.run_id, iteration=JUDGED)
        written = write_steps(log, Condition(group_size=4), tmp_path / f"{name}-steps")
        (table,) = read_steps(written)
        tables.append(table)
    assert tables[0].equals(tables[1])
    assert tables[0]["trajectory_id"].to_pylist() == ["t0:0"] * 2 + ["t0:1"] * 2
    logged = tables[0]["logged_at"].to_pylist()
    assert logged == sorted(logged)


def test_a_group_is_the_first_rollouts_of_the_log(tmp_path: Path):
    rows = [row for n in range(6) for row in trajectory(f"t0:{n}", "A a B")]
    log = write_store(tmp_path / "log", rows, run_id=BASE.run_id, iteration=JUDGED)
    (table,) = read_steps(write_steps(log, Condition(group_size=4), tmp_path / "steps"))
    assert table["trajectory_id"].to_pylist() == [f"t0:{n}" for n in range(4)]


def test_a_mean_is_over_the_games_that_have_the_number():
    found = mean([0.5, None, 0.5])
    assert (found.value, found.low, found.high, found.num_games) == (0.5, 0.5, 0.5, 2)
    # A mean of two games is 0, 1/2 or 1, with probabilities 1/4, 1/2 and 1/4.
    found = mean([0.0, 1.0])
    assert (found.value, found.low, found.high) == (0.5, 0.0, 1.0)
    assert mean([None]).num_games == 0


def _rows(values: Mapping[str, list[float | None]]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {"condition": BASE.name, "estimator": name, "part": "total", "game": f"g{number}"}
            | dict.fromkeys(STATISTICS, value)
            for name, of_games in values.items()
            for number, value in enumerate(of_games)
        ],
        schema_overrides=dict.fromkeys(STATISTICS, pl.Float64),
    )


def test_differences_are_paired_by_game():
    rows = _rows({"a": [0.1, 0.5, None], "b": [0.3, 0.7, 0.9]})
    (found,) = differences(rows, "over_all", ("a", "total")).to_dicts()
    assert (found["estimator"], found["part"]) == ("b", "total")
    assert [found[name] for name in ("difference", "low", "high")] == pytest.approx([0.2] * 3)


def test_the_first_table_has_the_best_first_and_says_what_there_is_not():
    rows = _rows({"worse": [0.1, 0.1], "better": [0.3, 0.3]})
    assert first_table(rows, averages(rows)).splitlines()[2:] == [
        "| `better` | 0.30 ± 0.00 | 0.30 ± 0.00 | – | – | – | – |",
        "| `worse` | 0.10 ± 0.00 | 0.10 ± 0.00 | – | – | – | – |",
    ]


def test_the_first_table_says_how_many_steps_and_how_many_groups_have_no_step_part():
    rows = _rows({"same": [0.5, 1.0]}).with_columns(part=pl.lit("step"))
    line = first_table(rows, averages(rows)).splitlines()[2]
    assert line.endswith("| 75% | 50% |")


def test_lists_are_left_out_or_all_alike(tmp_path: Path):
    world = worlds.WORLDS["sokoban"]
    log = create_store(tmp_path / "log")
    games = worlds.play(log, "sokoban", num_tasks=2, num_workers=0)
    assert len(games) == 2
    lists: dict[str, list[list[str] | None]] = {}
    for name in ("exact", "none", "constant"):
        steps = write_steps(log, world.condition("sokoban", name), tmp_path / name)
        lists[name] = [
            row for t in read_steps(steps) for row in t["admissible_actions"].to_pylist()
        ]
    assert lists["none"] == [None] * len(lists["exact"])
    assert {tuple(sorted(of)) for of in lists["constant"]} == {("down", "left", "right", "up")}
    assert min(map(len, lists["exact"])) < 4
    rows = pl.concat([judge(log, world.condition("sokoban", name)) for name in lists])
    text = worlds.tables(rows)
    assert text.startswith("## sokoban\n\n| estimator | advantage, exact | step part, exact |")
    assert "`reach`" in text
