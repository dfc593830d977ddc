"""The learning experiment: its runs, what is read off them, and that a policy learns."""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from experiments.textworld import run
from experiments.textworld.cells import ARMS, WARM_POLICIES, Cell, pairs
from experiments.textworld.report import ends_of, tables
from experiments.textworld.run import RISE, learn, made_by, quick
from graphcredit.loop.config import LoopConfig


def test_the_runs_of_a_pair_differ_in_credit_alone(tmp_path: Path):
    cells = pairs(tmp_path)
    assert [(cell.seed, cell.arm) for cell in cells[:5]] == [
        *((1, arm) for arm in ARMS),
        (4, "grpo"),
    ]
    configs = [cell.config() for cell in cells]
    assert len({config.out for config in configs}) == len(set(map(made_by, cells))) == 16
    assert [config.credit.estimators for config in configs[:4]] == [(arm,) for arm in ARMS]
    same = {"out": configs[0].out, "credit": configs[0].credit}
    assert {str(config.changed(**same)) for config in configs[:4]} == {str(configs[0])}
    assert len({config.model for config in configs}) == len(set(WARM_POLICIES.values())) == 2
    evaluated = [config.evaluate for config in configs]
    assert all(each and (each.tasks, each.samples) == (64, 8) for each in evaluated)
    assert len({each.seed for each in evaluated if each}) == 4
    learnt = {game for config in configs for game in str(config.collect.games).split(",")}
    assert not learnt & {game for each in evaluated if each for game in str(each.games).split(",")}


def test_a_run_that_is_made_elsewhere_is_the_same(tmp_path: Path):
    cell = pairs(tmp_path)[0]
    assert made_by(cell) == made_by(replace(cell, out=tmp_path / "elsewhere"))


def test_a_row_belongs_to_the_policy_before_its_iteration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def lines(_: LoopConfig) -> Generator[dict[str, Any]]:
        unseen = "sampled_held_out_success_rate"
        yield {
            "iteration": 0,
            "env_steps": 900,
            "success_rate": 0.25,
            "cpu_seconds": 4,
            unseen: 0.1,
        }
        yield {"iteration": 1, "env_steps": 1500, "success_rate": 0.5, "cpu_seconds": 6.0}
        yield {"iteration": 2, "env_steps": 1500, unseen: 0.3}

    monkeypatch.setattr(run, "run_loop", lines)
    rows = learn(Cell(out=tmp_path, arm="grpo", seed=1))
    assert rows["env_steps"].to_list() == [0, 900, 1500]
    assert rows["seconds"].to_list() == [0.0, 4.0, 10.0]
    assert ends_of(rows).row(0) == ("grpo", 1, 0.1, 0.3, 0.375, 1500, 10.0)


def _rows(arm: str, seed: int, success: float, end: float) -> list[dict[str, Any]]:
    of_run = {"arm": arm, "seed": seed, "env_steps": 16_000, "seconds": 160.0}
    return [
        of_run | {"iteration": 0, "success": success, "unseen": 0.1},
        of_run | {"iteration": 1, "success": None, "unseen": end},
    ]


def test_only_whole_pairs_are_reported():
    rows: list[dict[str, Any]] = []
    ends = [0.2, 0.25, 0.22, 0.3, 0.1, 0.25, 0.22, 0.4, 0.9, 0.9]
    for number, end in enumerate(ends):
        pair, place = divmod(number, len(ARMS))
        rows += _rows(ARMS[place], list(WARM_POLICIES)[pair], end / 2, end)
    shown = tables(pl.DataFrame(rows))
    assert "unfinished, nothing is decided: 2 of 4 planned pairs are whole" in shown
    assert "| reach | 2 | 0.100 | 0.350 | 0.175 | 16,000 | 160 |" in shown
    # 0.1 and 0.3: a mean of 0.2, a standard error of 0.1, and 12.706 of these.
    assert "| reach - grpo | 2 | +0.200 (-1.071 to +1.471) | 2 |" in shown


@pytest.mark.play
def test_a_policy_learns_to_win(tmp_path: Path):
    """A warm policy, and ten iterations: the only test that trains a real policy."""
    before, after = quick(tmp_path)
    assert after >= before + RISE
