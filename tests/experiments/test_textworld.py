"""The learning experiment: its runs, what is read off them, and that a policy learns."""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from experiments.textworld import run
from experiments.textworld.cells import ARMS, RATES, Cell, pairs, sweep
from experiments.textworld.report import best_rates, ends_of, tables
from experiments.textworld.run import RISE, learn, made_by, quick
from graphcredit.loop.config import LoopConfig

_BEST = dict.fromkeys(ARMS, 6e-4)


def test_pairs_begin_from_policies_of_their_own_and_differ_in_credit_alone(tmp_path: Path):
    cells = pairs(tmp_path, _BEST)
    assert [(cell.seed, cell.arm) for cell in cells[:5]] == [
        *((1, arm) for arm in ARMS),
        (2, "grpo"),
    ]
    configs = [cell.config() for cell in cells]
    assert len({config.model for config in configs}) == 5
    assert len({config.out for config in configs}) == len(set(map(made_by, cells))) == 20
    evaluated = [config.evaluate for config in configs]
    assert all(each and (each.tasks, each.samples) == (64, 16) for each in evaluated)
    assert len({each.seed for each in evaluated if each}) == 5
    with_lists, without = configs[2:4]
    same = {"out": with_lists.out, "collect": with_lists.collect}
    assert with_lists.collect.record_admissible
    assert not without.collect.record_admissible
    assert without.changed(**same) == with_lists, "the arms differ in what is recorded alone"


def test_the_sweep_has_every_arm_at_every_rate_and_no_held_out_game(tmp_path: Path):
    cells = sweep(tmp_path)
    assert len({(cell.arm, cell.rate) for cell in cells}) == len(ARMS) * len(RATES) == len(cells)
    assert {cell.warm for cell in cells} == {tmp_path / "warm-0"}
    configs = [cell.config() for cell in cells]
    assert not any(config.evaluate for config in configs)
    assert {config.collect.tasks for config in configs} == {96}


def test_a_run_that_is_made_elsewhere_is_the_same_and_another_rate_is_not(tmp_path: Path):
    cell = sweep(tmp_path)[0]
    assert made_by(cell) == made_by(replace(cell, out=tmp_path / "elsewhere"))
    assert len({made_by(each) for each in sweep(tmp_path)}) == 12


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
    rows = learn(Cell(out=tmp_path, arm="grpo", rate=6e-4, seed=1))
    assert rows["env_steps"].to_list() == [0, 900, 1500]
    assert rows["seconds"].to_list() == [0.0, 4.0, 10.0]
    assert ends_of(rows).row(0) == ("grpo", 6e-4, 1, 0.1, 0.3, 0.375, 1500, 10.0)


def _rows(arm: str, rate: float, seed: int, success: float, end: float) -> list[dict[str, Any]]:
    of_run = {"arm": arm, "rate": rate, "seed": seed, "env_steps": 16_000, "seconds": 160.0}
    return [
        of_run | {"iteration": 0, "success": success, "unseen": 0.1},
        of_run | {"iteration": 1, "success": None, "unseen": end},
    ]


def test_only_whole_pairs_at_the_best_rate_are_reported():
    rows = [
        row
        for arm in ARMS
        for rate in RATES
        for row in _rows(arm, rate, 0, 0.2 if rate == 6e-4 else 0.1, 0.9)
    ]
    ends = [0.2, 0.25, 0.3, 0.22, 0.1, 0.25, 0.4, 0.22, 0.9, 0.9]
    for number, end in enumerate(ends):
        seed, place = divmod(number, len(ARMS))
        rows += _rows(list(ARMS)[place], 6e-4, seed + 1, end / 2, end)
    table = pl.DataFrame(rows)
    assert best_rates(table) == _BEST
    shown = tables(table)
    assert "| grpo | 0.100 | 0.200 | 0.100 |" in shown
    assert "unfinished, nothing is decided: 2 of 5 planned pairs are whole" in shown
    assert "| reach | 0.0006 | 2 | 0.100 | 0.350 | 0.175 | 16,000 | 160 |" in shown
    # 0.1 and 0.3: a mean of 0.2, a standard error of 0.1, and 12.706 of these.
    assert "| reach - grpo | 2 | +0.200 (-1.071 to +1.471) | 2 |" in shown


@pytest.mark.play
def test_a_policy_learns_to_win(tmp_path: Path):
    """A warm policy, and ten iterations: the only test that trains a real policy."""
    before, after = quick(tmp_path)
    assert after >= before + RISE
