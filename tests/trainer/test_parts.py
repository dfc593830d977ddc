"""Several iterations and stores in one training, and a condition."""

from pathlib import Path
from typing import Any

import pytest

from graphcredit.store.errors import InputError, OptionError
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.training import plan_training
from tests.trainer.logs import Row, episode, token_store, turn
from tests.trainer.models import save_tiny_model

PLAIN: dict[str, Any] = {"correction": "none", "kl_coefficient": 0.0, "objective": "reinforce"}
PLAIN |= {"mismatch_tolerance": 1e9}


def configured(path: Path, *stores: Path, **options: Any) -> TrainConfig:
    chosen = {"model": str(path / "m"), "out": path / "out", "device": "cpu", **PLAIN, **options}
    return TrainConfig(store=stores or path / "s", **chosen)


def played(task: str, *advantages: float, version: str = "p-0") -> list[Row]:
    """Return a trajectory that is named as its task; each step says its advantage."""
    turns = [
        turn([3, 4 + n], [5, 9 - n], advantage=a, policy_version=version)
        for n, a in enumerate(advantages)
    ]
    return episode(task, *turns, task_id=task, success=advantages[-1] > 0)


def test_iterations_runs_and_stores_are_one_training(tmp_path: Path):
    save_tiny_model(tmp_path / "m")
    one, two = tmp_path / "s", tmp_path / "other"
    corrected: dict[str, Any] = {"correction": "token-truncate"}
    for number in range(3):
        token_store(one, [played("a", number + 0.5, 1.0, version=f"p-{number}")], iteration=number)
    token_store(two, [played("a", 7.0)], run_id="b", iteration=1)
    config = configured(tmp_path, one, two, iteration="1-2", run="r0", max_staleness=0, **corrected)
    with pytest.raises(InputError, match=r"other has 1 runs \(b\): say which by --run"):
        plan_training(config)
    effective, plan, report = plan_training(config.changed(run="r0,b", iteration="1"))
    assert plan.index.advantage.tolist() == [1.5, 1.0]  # p-0 of the other store is stale
    assert (effective.run, effective.iteration, report.dropped["stale"]) == ("r0,b", "1", 1)
    (both, plan, _), of = (
        plan_training(configured(tmp_path, iteration="0-1,2", one_sequence=True, **corrected)),
        [0, 0, 1, 1, 2, 2],
    )
    assert plan.index.advantage.tolist() == [0.5, 1.0, 1.5, 1.0, 2.5, 1.0]
    assert (plan.index.trajectory.tolist(), both.iteration) == (of, "0-1,2")
    assert set(plan.index.staleness.tolist()) == {0, 1, 2}
    with pytest.raises(InputError, match="iteration 3: found none"):
        plan_training(configured(tmp_path, iteration="2-3"))
    with pytest.raises(InputError, match=r"newest iterations differ \(r0: 2, b: 1\)"):
        plan_training(config.changed(iteration=None, run="r0,b"))
    with pytest.raises(InputError, match="no steps of run 'c'"):
        plan_training(config.changed(run="r0,c"))
    for wrong in ("3-", "5-3", "x", "-1"):
        with pytest.raises(OptionError, match="iterations such as 3, 3-5 or 2,4-6"):
            config.changed(iteration=wrong)


def test_a_condition_leaves_out_steps_and_groups(tmp_path: Path):
    save_tiny_model(tmp_path / "m")
    trajectories = [played("a", 0.5, -1.0), played("b", 2.0, 3.0)]
    for iteration in (0, 1):
        token_store(tmp_path / "s", trajectories, iteration=iteration)
    for condition, kept in (
        ("reach_advantage > 0.4 AND task_id = 'a' -- only the first", [0.5]),
        ("max(success::int) OVER (PARTITION BY trajectory_id) = 1", [2.0, 3.0]),
        ("task_id IN (SELECT task_id FROM credit JOIN steps USING (trajectory_id)"
         " WHERE reach_advantage < 0)", [0.5, -1.0]),
    ):  # fmt: skip
        _, plan, report = plan_training(configured(tmp_path, iteration=1, filter=condition))
        assert plan.index.advantage.tolist() == kept
        assert report.dropped["filtered"] == 4 - len(kept)
    for wrong, told in (("rewarrd > 0", "column rewarrd not found"), ("1) = 1; (", "syntax")):
        with pytest.raises(OptionError, match=f"columns of the view enriched: .*{told}"):
            plan_training(configured(tmp_path, filter=wrong))
    with pytest.raises(InputError, match="4 filtered"):
        plan_training(configured(tmp_path, filter="false"))
