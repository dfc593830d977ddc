"""The experiment with a pretrained model: its cells stop, go on, and are counted."""

from pathlib import Path

import polars as pl
import pytest
import torch

from experiments.language_model.cells import ARMS, Plan
from experiments.language_model.report import missing, tables
from experiments.language_model.run import read, run
from tests.cli.loop_worlds import register_corridors, save_talker


def _plan(root: Path) -> Plan:
    return Plan(
        learnt="2",
        unseen="3",
        num_games=2,
        update_every=1,
        passes=1,
        samples=1,
        lengths=(4,),
        seeds=(1,),
        collect={
            "env": "corridor",
            "group_size": 2,
            "max_new_tokens": 1,
            "template": str(root / "start" / "corridor.toml"),
        },
        train={"learning_rate": 0.01, "batch_size": 8, "device": "cpu", "kl_coefficient": 0},
    )


@pytest.mark.smoke
def test_the_plan_has_every_arm_at_both_lengths_in_four_pairs_that_differ_in_credit(tmp_path: Path):
    cells = Plan().cells()
    assert len(missing(Plan(), pl.DataFrame())) == len(cells) == 4 * 2 * 4
    configs = [cell.config(tmp_path / "model", tmp_path, 0) for cell in cells[:4]]
    assert [config.credit.estimators for config in configs] == [(arm,) for arm in ARMS]
    same = {name: getattr(configs[0], name) for name in ("out", "credit")}
    assert all(config.changed(**same) == configs[0] for config in configs)
    learnt, unseen = (set(text.split(",")) for text in (Plan().learnt, Plan().unseen))
    assert len(learnt) == len(unseen) == 64
    assert not learnt & unseen


def test_cells_stop_when_the_time_is_over_and_go_on_to_the_same_rows(tmp_path: Path):
    torch.set_num_threads(1)
    register_corridors()
    model, plan = save_talker(tmp_path / "start"), _plan(tmp_path)
    run(plan, model, tmp_path / "whole", tmp_path / "whole.parquet", 1e9)
    starts = 0
    while missing(plan, read(tmp_path / "cut.parquet")):
        run(plan, model, tmp_path / "cut", tmp_path / "cut.parquet", 0.0)
        starts += 1
        if starts == 3:
            assert tables(plan, read(tmp_path / "cut.parquet")).startswith(
                "3 of 4 cells are missing"
            )
    assert starts == 3 * len(ARMS), "each of two iterations, and the last evaluation"
    kept = ("arm", "length", "seed", "first", "end", "during", "env_steps", "model")
    whole, cut = (read(tmp_path / f"{name}.parquet").select(kept) for name in ("whole", "cut"))
    assert cut.equals(whole)
    shown = tables(plan, whole)
    assert shown.startswith("0 of 4 cells are missing\n")
    assert "reach - grpo" in shown
