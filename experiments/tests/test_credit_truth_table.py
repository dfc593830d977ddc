"""A small version of the table of what credit is worth, and the arithmetic of the large one."""

import polars as pl
import pytest

from experiments.credit_truth.averages import averages, by_wins, differences, tuned
from experiments.credit_truth.credit import judged, reads_lists
from experiments.credit_truth.judge import MANY, Unit, judge, made_by, units
from experiments.credit_truth.learning import Curves, curves_of, learn
from experiments.credit_truth.policies import POLICIES
from experiments.credit_truth.settings import TUNED, tried
from experiments.credit_truth.worlds.table import WORLDS
from graphcredit.credit.estimators.table import ESTIMATORS

REFERENCES = {"true Q - V", "true Q - V of the view", "true progress"}

FLOORS = {
    "true Q - V": (0.6, 0.9),
    "true Q - V of the view": (0.6, 0.9),
    "true progress": (0.2, 0.2),
    "grpo": (0.1, 0.5),
    "graphgpo": (0.1, 0.4),
    "reach": (0.4, 0.8),
}
"""Least mean fraction of the true gain, with one group and with `MANY`."""


def _unit(world: str, policy: str, *estimators: str) -> Unit:
    return Unit(world=world, policy=policy, seed=0, num_groups=MANY, estimators=estimators)


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    """Return the rows of two worlds, with all estimators."""
    return pl.concat(
        [judge(_unit(world, policy)) for world in ("cliff", "lift") for policy in POLICIES]
    )


def test_no_credit_is_below_its_floor(rows: pl.DataFrame):
    found = averages(rows, ["fraction"], ["credit", "num_groups"])
    for name, floors in FLOORS.items():
        for num_groups, floor in zip((1, MANY), floors, strict=True):
            assert found[name, num_groups]["fraction"].value >= floor, (name, num_groups)
    judged_best = max(
        of["fraction"].value
        for (name, num_groups), of in found.items()
        if num_groups == 1 and name not in REFERENCES
    )
    assert judged_best < found["true Q - V", 1]["fraction"].value


def test_every_estimator_without_entities_is_judged_and_readers_with_every_list(rows: pl.DataFrame):
    names = {row.name for row in ESTIMATORS} - {"sapo"}
    assert set(rows["credit"]) == names | REFERENCES | set(TUNED)
    assert reads_lists("reach")
    assert not reads_lists("graphgpo")
    lists = dict(rows.group_by("credit").agg(pl.col("lists").unique().sort()).iter_rows())
    assert lists["reach"] == ["constant", "exact", "noisy", "none", "wrong"]
    assert lists["graphgpo"] == lists["true Q - V"] == [""]


def test_the_numbers_of_a_unit_are_in_their_ranges(rows: pl.DataFrame):
    assert (rows["best_gain"] > 0).all()
    assert rows["cosine"].is_between(-1, 1).all()
    assert rows["spearman"].is_between(-1, 1).all()
    assert rows["silent"].is_between(0, 1).all()
    # Without a success GRPO has no gradient.
    rare = rows.filter(credit="grpo", num_groups=1, policy="rare")
    assert rare["silent"].mean() == pytest.approx(0.96**8, abs=0.15)


@pytest.mark.smoke
def test_a_unit_is_judged_the_same_again():
    first, again = (judge(_unit("ladder", "rare", "gigpo")) for _ in range(2))
    assert first.equals(again)
    assert set(first["credit"]) == REFERENCES | {"gigpo"}


def test_a_full_run_has_every_world_and_policy():
    found = units(WORLDS, num_seeds=5, num_groups=2 * MANY, estimators=())
    assert len({unit.name for unit in found}) == len(WORLDS) * len(POLICIES) * 5


def test_what_decides_the_rows_of_a_unit_is_in_its_mark():
    marks = [made_by(_unit("lift", "rare", name)) for name in ("grpo", "grpo", "rloo")]
    assert marks[0] == marks[1] != marks[2]


def test_what_is_tuned_was_tried_and_groups_without_a_win_teach_it_nothing(rows: pl.DataFrame):
    for name, options in TUNED.items():
        assert (name.partition(",")[0], options) in list(tried())
    found = by_wins(rows)
    for credit in ("grpo", "discounted, tuned", "graphgpo, tuned", "graft, tuned"):
        assert found[credit, ""][0].value == pytest.approx(0.0), credit
    none, *some = (mean.value for mean in found["reach", "none"])
    assert 0.1 < none < min(some)


def test_groups_count_alike_whatever_their_policy_within_a_number_of_wins():
    groups = [
        {"world": "a", "groups_by_wins": [3.0, 1.0], "sum_by_wins": [0.3, 1.0]},
        {"world": "a", "groups_by_wins": [1.0, 0.0], "sum_by_wins": [0.5, 0.0]},
        {"world": "b", "groups_by_wins": [2.0, 0.0], "sum_by_wins": [0.8, 0.0]},
    ]
    named = [row | {"credit": "x", "lists": "", "num_groups": 1} for row in groups]
    # World a has 0.8 / 4 without a win, b 0.8 / 2; only a has groups with one.
    no_win, one = by_wins(pl.DataFrame(named))["x", ""]
    assert (no_win.value, no_win.low, no_win.high) == pytest.approx((0.3, 0.2, 0.4))
    assert one.value == pytest.approx(1.0)


def _row(world: str, policy: str, credit: str, fraction: float) -> dict[str, object]:
    return {"world": world, "policy": policy, "credit": credit, "lists": "", "fraction": fraction}


def test_means_are_over_policies_then_worlds():
    rows = pl.DataFrame(
        [
            *(_row("a", "rare", "x", value) for value in (0.0, 1.0, 2.0)),  # 1.0
            _row("a", "quarter", "x", 0.0),  # world a: 0.5
            _row("b", "rare", "x", 0.1),
            *(_row(world, "rare", "y", 0.3) for world in "ab"),
        ]
    )
    found = averages(rows, ["fraction"], ["credit", "lists"])
    mean = found["x", ""]["fraction"]
    assert (mean.value, mean.low, mean.high) == pytest.approx((0.3, 0.1, 0.5))
    gaps = differences(rows, "y")
    assert gaps["x", ""].value == pytest.approx(0.0)
    assert gaps["x", ""].low == pytest.approx(-0.2)
    assert gaps["y", ""].high == 0


def _run(world: str, rate: float, seed: int, *curve: float) -> dict[str, object]:
    return _row(world, "rare", "x", 0.0) | {"rate": rate, "seed": seed, "curve": list(curve)}


def test_rates_are_chosen_on_other_seeds_and_who_ends_where_it_began_is_stuck():
    curves = pl.DataFrame(
        [
            _run("a", 1.0, 100, 0.0, 0.2),
            _run("a", 3.0, 100, 0.0, 0.1),
            _run("a", 1.0, 0, 0.2, 0.1),
            _run("a", 1.0, 1, 0.2, 0.4),
            _run("a", 3.0, 0, 0.9, 0.9),
            _run("b", 1.0, 100, 0.0, 0.2),
            _run("b", 3.0, 100, 0.0, 0.3),
            _run("b", 3.0, 0, 0.5, 0.5),
        ]
    )
    found = tuned(curves)
    assert found["rate"].to_list() == [1, 1, 3]
    assert found["mean"].to_list() == pytest.approx([0.15, 0.3, 0.5])
    assert found["final"].to_list() == [0.1, 0.4, 0.5]
    assert found["stuck"].to_list() == [1, 0, 1]
    # Over both worlds the rate 1 has 0.1 and 0.1, the rate 3 0.05 and 0.15: the smaller is taken.
    one_rate = tuned(curves, by_world=False)
    assert one_rate["rate"].unique().to_list() == [1]
    assert one_rate["mean"].to_list() == pytest.approx([0.15, 0.3])


def test_a_policy_learns_from_true_credit():
    curves = learn(Curves(world="ladder", credit="true Q - V", lists=""))
    found = averages(tuned(curves), ["mean", "stuck"], ["credit", "lists"])
    assert found["true Q - V", ""]["mean"].value > 0.3
    assert found["true Q - V", ""]["stuck"].value < 0.2
    assert len(list(curves_of(WORLDS, ("grpo", "reach")))) == len(WORLDS) * (3 + 1 + 2)
    assert judged(["grpo"]).keys() == {"grpo"}
