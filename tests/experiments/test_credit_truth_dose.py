"""Credits at an equal dose: by hand, as invariants of a world, and the tables of what is left."""

import numpy as np
import polars as pl
import pytest

from experiments.credit_truth.credit import GROUP_SIZE, credits_of, judged
from experiments.credit_truth.dose import learning
from experiments.credit_truth.dose.equal import carries, common_number, equal_dose, only_in
from experiments.credit_truth.dose.judge import STAGES, dose_of, judge_dose, staged
from experiments.credit_truth.dose.report import dose_tables, explained
from experiments.credit_truth.exact import Exact, policy_of
from experiments.credit_truth.judge import Unit
from experiments.credit_truth.learning import Curves
from experiments.credit_truth.policies import logits_of
from experiments.credit_truth.rollouts import sample
from experiments.credit_truth.worlds.table import world_named

GROUP = np.array([0, 0, 0, 1, 1])
FEW = np.array([1.0, -2.0, 0.0, 0.0, 1e-15])
MANY = np.array([3.0, 3.0, 6.0, 1.0, -1.0])
DRAW = np.array([0.9, 0.1, 0.5, 0.2, 0.3])


def test_by_hand_each_group_keeps_as_many_steps_and_its_sum_is_its_number_of_steps():
    number = common_number([FEW, MANY], GROUP)
    assert number.tolist() == [2, 0]
    # 1 and -2 are kept, and their sum is 3 already; 3 and 6 have the least draws.
    assert equal_dose(FEW, GROUP, number, DRAW).tolist() == [1, -2, 0, 0, 0]
    assert equal_dose(MANY, GROUP, number, DRAW).tolist() == [0, 1, 2, 0, 0]
    assert only_in(MANY, GROUP, number).tolist() == [3, 3, 6, 0, 0]


def test_a_credit_with_fewer_steps_than_are_kept_is_refused():
    with pytest.raises(ValueError, match="as many steps with credit"):
        equal_dose(FEW, GROUP, np.array([3, 0]), DRAW)


def test_thinning_is_unbiased_where_all_steps_weigh_the_same():
    rng = np.random.default_rng(0)
    credit, group, number = np.array([1.0, -1.0, 1.0, 1.0]), np.zeros(4, np.int64), np.array([2])
    kept = [equal_dose(credit, group, number, rng.random(4)) for _ in range(4_000)]
    assert np.mean(kept, axis=0) == pytest.approx(credit, abs=0.1)


def test_all_credits_of_a_world_get_one_dose_in_every_group():
    world = world_named("ladder")
    policy = policy_of(world, logits_of(world, "quarter", 0))
    rollouts = sample(world, policy[None], 4 * GROUP_SIZE, np.random.default_rng(0))
    estimators = judged(["grpo", "hgpo", "graphgpo", "milegpo"])
    found = dict(credits_of(world, rollouts, estimators, Exact.of(world, policy)))
    group = rollouts.episode // GROUP_SIZE
    equal = [stages[2] for stages in staged(found, rollouts, np.random.default_rng(1)).values()]
    counts = {tuple(np.bincount(group, carries(credit))) for credit in equal}
    assert len(counts) == 1
    assert max(counts.pop()) > 0
    size = np.bincount(group)
    for credit in equal:
        total = np.bincount(group, np.abs(credit))
        assert total == pytest.approx(np.where(total > 0, size, 0))
    assert len({dose_of(credit, rollouts)["steps"] for credit in equal}) == 1
    assert len({dose_of(credit, rollouts)["steps"] for credit in found.values()}) > 1


def test_learning_at_an_equal_dose_and_the_tables(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(learning, "ITERATIONS", 2)
    names = ("grpo", "hgpo")
    every = [Curves(world="lift", credit=name, lists="") for name in ("true progress", *names)]
    curves = pl.concat([learning.learn_at_equal_dose(each, names) for each in every])
    equal = curves.filter(stage="equal dose")
    assert curves["curve"].list.len().unique().to_list() == [3]
    # The mean of |A| is 1 in groups that speak; all of their steps weigh that much, or more of few.
    assert (equal["size"] <= 1 + 1e-9).all()
    assert (equal["steps"] <= equal["size"] + 1e-9).all()
    first = curves.with_columns(pl.col("curve").list.first())
    assert first.group_by("policy", "seed").agg(pl.col("curve").n_unique())["curve"].max() == 1
    unit = Unit(world="lift", policy="quarter", seed=0, num_groups=16, estimators=names)
    rows = judge_dose(unit)
    assert rows.filter(stage="equal dose")["steps"].n_unique() == 1
    assert rows["stage"].unique(maintain_order=True).to_list() == list(STAGES)
    text = dose_tables(rows, curves)
    assert "| `hgpo` |" in text
    assert "At the equal dose" in text


def test_what_dose_explains_is_said_by_the_spread_and_by_the_order():
    dose = {"little": 0.2, "some": 0.4, "much": 0.8}
    rows = pl.DataFrame(
        [
            {"world": world, "policy": "rare", "credit": name, "lists": "", "stage": stage}
            | {"steps": share if stage == "as is" else 0.1}
            | {"fraction_1": share if stage == "as is" else 0.5}
            | {"fraction_16": 1 - share}
            for world in ("one", "two")
            for name, share in dose.items()
            for stage in STAGES
        ]
    )
    runs = rows.filter(pl.col("stage").is_in(learning.STAGES)).with_columns(mean=pl.col("steps"))
    lines = explained(rows, runs).splitlines()
    assert lines[2] == "| 1 group | as is | 0.25 | 0.20 | 0.80 | +1.00 (+1.00 to +1.00) |"
    assert lines[4].startswith("| 1 group | equal dose | 0.00 | 0.50 | 0.50 |")
    assert lines[5].endswith("-1.00 (-1.00 to -1.00) |")
