"""The learning experiment: what is read off curves, what counts as done, and that it learns."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.markdown import frame
from experiments.textworld import report, run
from experiments.textworld.cells import (
    Cell,
    Tuning,
    repeats,
    sweep,
    sweep_rates,
    variants,
    warm_start,
)
from experiments.textworld.curves import area, coverage, first_at, paired_test, smoothed
from experiments.textworld.run import RISE, against_kept, quick
from experiments.textworld.runs import KEPT, Runs, mean_success, older_formulas, signals
from experiments.textworld.settings import ARMS, SETTINGS
from experiments.textworld.tables import (
    arms_table,
    health_table,
    held_out_table,
    sweep_table,
    variants_table,
)
from experiments.textworld.unseen import ends_of, interval, ranged
from experiments.textworld.warm import KEPT_WARM, make_warm
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from tests.worlds import worked_example, write_store

CELL = Cell(setting="easy", arm="grpo", learning_rate=3e-4, kl_coefficient=0.02, warm=1, seed=1)


def test_a_smoothed_curve_is_the_mean_over_three_iterations_and_fewer_at_its_start():
    assert smoothed([0.0, 0.6, 0.3, 0.9]).tolist() == pytest.approx([0.0, 0.3, 0.3, 0.6])


def test_a_level_is_reached_where_the_smoothed_curve_first_has_it():
    steps, success = [0, 100, 200, 300], [0.0, 0.6, 0.3, 0.9]
    assert first_at(steps, success, 0.6) == 300
    assert first_at(steps, success, 0.7) == float("inf")
    # Two iterations are not yet what a curve is averaged over.
    assert first_at(steps, success, 0.3) == 200


def test_the_area_is_the_mean_height_and_a_curve_stays_as_it_ended():
    assert area([0, 100], [0.5, 0.5], 1000) == pytest.approx(0.5)
    # From 0 to 1 over half of the budget, smoothed to a half, where it stays.
    assert area([0, 500], [0.0, 1.0], 1000) == pytest.approx(0.375)
    assert area([0, 500], [0.0, 1.0], 1000, 1) == pytest.approx(0.75)


def test_a_band_holds_the_median_unless_all_runs_are_on_one_side_of_it():
    random = np.random.default_rng(0)
    drawn = random.exponential(size=(20_000, 5))
    held = (drawn.min(axis=1) <= np.log(2)) & (np.log(2) <= drawn.max(axis=1))
    assert held.mean() == pytest.approx(coverage(5), abs=0.01)
    assert coverage(1) == 0


def test_the_paired_test_counts_the_signs_that_are_as_extreme():
    others = {(0, seed): 0.0 for seed in range(4)}
    assert paired_test({(0, seed): 0.1 for seed in range(4)}, others) == 2 / 16
    mixed = {(0, seed): gap for seed, gap in enumerate([0.3, 0.2, 0.1, -0.1])}
    signs = [sum(s * g for s, g in zip(row, mixed.values(), strict=True)) for row in _signs(4)]
    expected = np.mean([abs(total) >= 0.5 - 1e-12 for total in signs])
    assert paired_test(mixed, others) == expected
    assert paired_test({**mixed, (9, 9): 5.0}, others) == expected, "only pairs count"


def _signs(count: int) -> list[tuple[int, ...]]:
    return list(product((-1, 1), repeat=count))


def _write_warm(out: Path, cell: Cell, weights: bytes = b"weights") -> None:
    path = warm_start(out, cell.setting, cell.warm) / "model" / "model.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(weights)


def _write(
    out: Path,
    cell: Cell,
    ends: Sequence[int],
    success: Sequence[float],
    **columns: float,
) -> None:
    _write_warm(out, cell)
    path = out / cell.name / "loop.jsonl"
    path.parent.mkdir(parents=True)
    config = json.dumps(cell.config(out).as_json() | {"model_hash": "0"})
    (path.parent / "config.json").write_text(config)
    lines = [
        {
            "iteration": number,
            "env_steps": steps,
            "success_rate": rate,
            "cpu_seconds": 10.0,
            "valid_share": 0.9,
            "entropy": 0.4,
            "kl": 0.01,
            "grad_norm": 0.2,
            "mean_length": 12.0,
            "num_updates": 4,
            "dropped": {"zero_advantage": number},
            "degenerate_share": 0.5,
            "zero_share": 0.25,
            "state_group_size": 8.0,
            "alone_share": 0.0,
            **columns,
        }
        for number, (steps, rate) in enumerate(zip(ends, success, strict=True))
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def _keep(folder: Path, cells: Sequence[Cell] = (CELL,), rate: float = 0.1) -> Path:
    """Make runs and keep their table; return where."""
    for cell in cells:
        _write(folder / "a", cell, [6_000, 12_000], [rate, rate])
    kept = folder / "kept"
    kept.mkdir()
    Runs(out=folder / "a").done(cells).write_parquet(kept / "easy.parquet")
    return kept


def test_a_rate_is_that_of_the_policy_which_the_steps_before_it_made(tmp_path: Path):
    _write(tmp_path, CELL, [5_000, 12_500], [0.1, 0.4])
    run = Runs(out=tmp_path).of(CELL)
    assert run is not None
    assert run["env_steps"].to_list() == [0, 5_000]
    assert run["seconds"].to_list() == [0, 10]
    assert run["success_rate"].to_list() == [0.1, 0.4]
    assert not run.schema.dtypes().count(pl.Struct), "tables of runs go together column by column"


def test_a_run_is_done_when_its_budget_is_spent_and_a_kept_one_is_not_made_again(tmp_path: Path):
    kept = _keep(tmp_path, rate=0.2)
    _write(tmp_path / "b", CELL, [5_000, 11_000], [0.1, 0.4])
    assert Runs(out=tmp_path / "b").of(CELL) is None
    run = Runs(out=tmp_path / "b", kept=kept).of(CELL)
    assert run is not None
    assert run["success_rate"].to_list() == [0.2, 0.2]
    assert len(Runs(out=tmp_path / "b").done([CELL])) == 0


def test_what_a_run_did_beyond_the_budget_is_left_out(tmp_path: Path):
    kept = tmp_path / "kept"
    kept.mkdir()
    _write(tmp_path / "a", CELL, [6_000, 12_000, 18_000], [0.1, 0.4, 0.9])
    made = Runs(out=tmp_path / "a").of(CELL)
    assert made is not None
    shorter = made.with_columns(pl.col("num_env_steps") - 1)
    shorter.write_parquet(kept / "easy.parquet")
    assert Runs(out=tmp_path / "b", kept=kept).of(CELL) is None, "it did not spend the budget"
    longer = made.with_columns(pl.col("env_steps") * 2)
    assert made["success_rate"].to_list() == [0.1, 0.4]
    longer.write_parquet(kept / "easy.parquet")
    run = Runs(out=tmp_path / "b", kept=kept).of(CELL)
    assert run is not None
    assert run["success_rate"].to_list() == [0.1]


def test_runs_that_were_kept_are_not_lost_and_those_made_again_replace_them(tmp_path: Path):
    kept = _keep(tmp_path, [CELL, replace(CELL, arm="gigpo")])
    _write(tmp_path / "b", CELL, [6_000, 12_000], [0.3, 0.3])
    table = Runs(out=tmp_path / "b", kept=kept).table("easy", [CELL])
    assert sorted(table.select("arm", "success_rate").rows()) == [
        ("gigpo", 0.1),
        ("gigpo", 0.1),
        ("grpo", 0.3),
        ("grpo", 0.3),
    ]


def test_a_run_that_is_made_again_is_shown_beside_the_kept_one(tmp_path: Path):
    kept = _keep(tmp_path)
    _write(tmp_path / "b", CELL, [6_000, 12_000], [0.3, 0.3])
    said = against_kept(Runs(out=tmp_path / "b", kept=kept), CELL)
    assert "mean success now 0.300 from weights " in said
    assert ", kept 0.100 from weights " in said
    assert "now" not in against_kept(Runs(out=tmp_path / "none", kept=kept), CELL)


def test_kept_runs_of_an_older_formula_are_named(tmp_path: Path):
    cells = [replace(CELL, arm=arm) for arm in ("grpo", "spo3", "spo3-scores")]
    kept = _keep(tmp_path, cells)
    made = Runs(out=tmp_path / "a")
    assert older_formulas(made, cells) == []
    made.done(cells).drop("formula").write_parquet(kept / "easy.parquet")
    assert older_formulas(Runs(out=tmp_path / "b", kept=kept), cells) == ["spo3", "spo3-scores"]


def test_runs_from_other_weights_are_told_apart(tmp_path: Path):
    kept = _keep(tmp_path)
    _write_warm(tmp_path / "b", CELL)
    runs = Runs(out=tmp_path / "b", kept=kept)
    assert runs.strangers("easy") == []
    _write_warm(tmp_path / "b", replace(CELL, warm=0), b"other weights")
    assert runs.strangers("easy") == [], "no run of it was kept"
    _write_warm(tmp_path / "b", CELL, b"other weights")
    assert runs.strangers("easy") == [1]
    assert Runs(out=tmp_path / "b").strangers("easy") == []
    assert runs.strangers("hard") == []


def test_kept_runs_from_other_weights_are_tuned_by_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    kept = tmp_path / "kept"
    swept = [cell for cell in sweep("easy") if cell.arm in ("grpo", "graphgpo")]
    for cell in [*swept, replace(CELL, arm="gigpo")]:
        _write(tmp_path / "a", cell, [6_000, 12_000], [0.1, 0.1])
    _report(monkeypatch, "--out", tmp_path / "a", "--kept", tmp_path / "none", "--save", kept)
    _write(tmp_path / "b", CELL, [6_000, 12_000], [0.3, 0.3])
    _report(monkeypatch, "--out", tmp_path / "b", "--kept", kept)
    assert "left out" not in capsys.readouterr().out
    _write_warm(tmp_path / "b", replace(CELL, warm=0), b"other weights")
    _report(monkeypatch, "--out", tmp_path / "b", "--kept", kept)
    shown = capsys.readouterr().out
    assert "the kept runs are left out: " in shown
    assert "warm policies [0] have other weights" in shown
    assert "0 of 30 runs of the sweep are done" in shown
    assert "1 of 12 repeats are done" in shown
    before = (kept / "easy.parquet").read_bytes()
    with pytest.raises(SystemExit):
        _report(monkeypatch, "--out", tmp_path / "b", "--kept", kept, "--save", kept)
    assert "its runs would be lost" in capsys.readouterr().err
    assert (kept / "easy.parquet").read_bytes() == before


def test_runs_are_not_made_beside_kept_ones_from_other_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    kept = _keep(tmp_path)
    for number in range(3):
        _write_warm(tmp_path / "b", replace(CELL, warm=number), b"other weights")
    monkeypatch.setattr(run, "_in_processes", lambda do, tasks, count: None)
    monkeypatch.setattr("sys.argv", ["run", "--out", str(tmp_path / "b"), "--kept", str(kept)])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # `main` sets it
    with pytest.raises(SystemExit, match=r"must begin from the same weights: .* \[1\] of easy"):
        run.main()


def test_only_the_arms_that_are_asked_for_are_tuned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    asked: list[Cell] = []
    monkeypatch.setattr(run, "_make", lambda runs, cells, count: asked.extend(cells))
    options = ["--out", str(tmp_path), "--arms", "grpo,spo3-scores", "--seed", "1"]
    monkeypatch.setattr("sys.argv", ["run", *options])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # `main` sets it
    with pytest.raises(SystemExit):
        run.main()
    assert {cell.arm for cell in asked} == {"grpo", "spo3"}
    assert len(asked) == 2 * 3


def test_every_arm_has_the_same_sweep_and_the_same_repeats():
    best = {arm: (3e-4, 0.02 * number) for number, arm in enumerate(ARMS)}
    tried = [*sweep("easy"), *sweep_rates("easy", best)]
    again = repeats("easy", best)
    for cells in (tried, again):
        assert len(set(cells)) == len(cells)
        assert {arm: len([c for c in cells if c.arm == arm]) for arm in ARMS} == dict.fromkeys(
            ARMS, len(cells) // len(ARMS)
        )
    pairs = {arm: {(c.warm, c.seed) for c in again if c.arm == arm} for arm in ARMS}
    assert len(set(map(frozenset, pairs.values()))) == 1
    assert {warm for warm, _ in pairs["grpo"]} == {0, 1, 2}
    assert not {c.seed for c in tried} & {c.seed for c in again}, "tuned on other seeds"


def test_tables_have_a_row_for_each_arm_best_first(tmp_path: Path):
    best = dict.fromkeys(ARMS, (0.0003, 0.02))
    cells = [cell for cell in repeats("easy", best) if cell.arm in ("grpo", "graphgpo")]
    for cell in cells:
        rise = 0.8 if cell.arm == "graphgpo" else 0.3
        _write(tmp_path, cell, [4_000, 8_000, 12_000], [0.1, 0.1 + rise, 0.1 + rise])
    done = Runs(out=tmp_path).done(cells)
    table = arms_table(done, SETTINGS["easy"], best)
    assert table["arm"].to_list() == ["graphgpo", "grpo"]
    assert table["runs"].to_list() == [6, 6]
    assert table["p"].to_list() == [2 / 2**6, None]
    gap = table["gap to grpo"][0]
    assert table["lowest to highest"].to_list() == [f"{gap:+.3f} to {gap:+.3f}", None]
    assert health_table(done, SETTINGS["easy"])["seconds"].to_list() == pytest.approx([30, 30])
    assert "| graphgpo | 0.0003 / 0.02 | 6 |" in frame(table)


def test_the_sweep_is_shown_by_arm_and_tuning(tmp_path: Path):
    cells = [cell for cell in sweep("easy") if cell.arm == "grpo"]
    for number, cell in enumerate(cells):
        _write(tmp_path, cell, [4_000, 8_000], [0.1 * number] * 2)
    runs = Runs(out=tmp_path)
    table = sweep_table({cell: run for cell in cells if (run := runs.of(cell)) is not None})
    assert table.columns == ["arm", "KL 0.02", "KL 0.05", "KL 0"]
    assert table.row(0)[1:] == pytest.approx((0.0, 0.1, 0.2))


def test_a_variant_is_compared_with_its_arm_from_the_same_beginnings(tmp_path: Path):
    best = dict.fromkeys(ARMS, (0.0006, 0.05))
    cells = [c for c in repeats("easy", best) if c.arm == "graphgpo"]
    cells += [c for c in variants("easy", best) if c.arm == "graphgpo-step"]
    assert len(cells) == 6 + 3
    for cell in cells:
        rate = 0.2 if cell.arm == "graphgpo" else 0.2 + 0.1 * cell.seed
        _write(tmp_path, cell, [4_000, 12_000], [rate, rate])
    table = variants_table(Runs(out=tmp_path).done(cells), SETTINGS["easy"])
    assert table.rows() == [
        ("graphgpo-step", 3, pytest.approx(0.4), pytest.approx(0.2), "+0.100, +0.200, +0.300")
    ]


def test_a_variant_changes_the_credit_of_its_arm_and_nothing_else(tmp_path: Path):
    best = dict.fromkeys(ARMS, (0.0006, 0.05))
    arm = next(c for c in repeats("easy", best) if c.arm == "spo3")
    variant = next(c for c in variants("easy", best) if c.arm == "spo3-scores")
    one, other = arm.config(tmp_path), variant.config(tmp_path)
    assert other.credit.estimators == one.credit.estimators == ("spo3",)
    assert other.credit.set == ("spo3.xi=1000000", "spo3.omega_k=10")
    assert other.changed(credit=one.credit, out=one.out) == one


def test_of_rollouts_that_branch_the_success_is_that_of_plays_beside_them(tmp_path: Path):
    best = {"spo3": (0.0003, 0.05)}
    cell = next(c for c in variants("hard", best) if c.arm == "spo3-branching")
    config = cell.config(tmp_path)
    assert (config.collect.allocation, config.update_every) == ("spo3", "group")
    assert config.evaluate is not None
    assert config.evaluate.samples == config.collect.group_size
    _write(tmp_path, cell, [6_000, 12_000, 18_000, 24_000], [0.9] * 4)
    path = tmp_path / cell.name / "loop.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line, beside in zip(lines[::2], (0.2, 0.4), strict=True):
        line["sampled_training_success_rate"] = beside
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    run = Runs(out=tmp_path).of(cell)
    assert run is not None
    assert run["success_rate"].to_list() == [0.2, None, 0.4, None]
    # A curve through (0, 0.2) and (12,000, 0.3), the mean of both, and flat from there.
    assert mean_success(run, cell) == pytest.approx((0.25 + 0.3) / 2)
    arm = replace(cell, arm="spo3")
    _write(tmp_path, arm, [12_000, 24_000], [0.1, 0.1])
    table = variants_table(Runs(out=tmp_path).done([cell, arm]), SETTINGS["hard"])
    assert table["variant"].to_list() == ["spo3-branching"]
    assert table["mean success"].to_list() == [pytest.approx(0.275)]
    both = Runs(out=tmp_path).done([cell, arm])
    assert health_table(both, SETTINGS["hard"])["arm"].to_list() == ["spo3"]


def test_runs_that_tune_play_no_held_out_games(tmp_path: Path):
    best = dict.fromkeys(ARMS, (0.0006, 0.05))
    swept = [*sweep("general"), *sweep_rates("general", best)]
    assert not any(cell.config(tmp_path).evaluate for cell in swept)
    assert all(cell.config(tmp_path).evaluate for cell in repeats("general", best))


def test_kept_runs_began_from_the_kept_warm_policies(tmp_path: Path):
    numbers: dict[str, list[int]] = {}
    for directory in sorted(KEPT_WARM.iterdir()):
        name, _, number = directory.name.rpartition("-")
        numbers.setdefault(name, []).append(int(number))
        make_warm(tmp_path, name, int(number))
    assert numbers, "some are kept"
    tables = {path.stem for path in KEPT.glob("*.parquet")} & numbers.keys()
    assert tables, "some runs from them are kept"
    for name in tables:
        began = pl.read_parquet(KEPT / f"{name}.parquet")["warm"].unique()
        assert set(numbers[name]) <= set(began) <= set(range(SETTINGS[name].warm_starts))
        assert Runs(out=tmp_path, kept=KEPT).strangers(name) == []


def _report(monkeypatch: pytest.MonkeyPatch, *options: str | Path) -> None:
    monkeypatch.setattr("sys.argv", ["report", *map(str, options)])
    report.main()


def test_a_report_shows_what_is_done_and_says_what_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    out, options = tmp_path / "out", ("--out", tmp_path / "out", "--kept", tmp_path / "none")
    with pytest.raises(SystemExit):
        _report(monkeypatch, "--setting", "easy", *options)
    assert "no run of the sweep is done" in capsys.readouterr().err
    best: dict[str, Tuning] = {}
    for cell in sweep("general"):
        if cell.arm in ("grpo", "graphgpo") and cell.kl_coefficient == 0.05:
            _write(out, cell, [8_000, 15_000], [0.1, 0.3])
            best[cell.arm] = (cell.learning_rate, cell.kl_coefficient)
    _report(monkeypatch, "--setting", "general", *options)
    shown = capsys.readouterr().out
    assert "rloo: no run of the sweep is done" in shown
    assert "2 of 27 runs of the sweep" in shown
    for cell in repeats("general", best):
        rate = 0.5 if cell.arm == "graphgpo" else 0.2
        held_out = {"sampled_held_out_success_rate": rate / 2}
        _write(out, cell, [10_000, 20_000, 30_000], [0.0, rate, rate], **held_out)
    _report(monkeypatch, "--setting", "general", *options, "--save", tmp_path / "saved")
    shown = capsys.readouterr().out
    assert "10 of 10 repeats are done" in shown
    assert "| graphgpo | 5 | 0.333 | 0.333 | 0.250 | 0.250 | 0.250 |" in shown
    assert (tmp_path / "saved" / "general.png").read_bytes().startswith(b"\x89PNG")
    kept = pl.read_parquet(tmp_path / "saved" / "general.parquet")
    assert len(kept) == 10 * 3 + 2 * 2
    with pytest.raises(SystemExit):
        _report(monkeypatch, "--setting", "general", *options, "--baseline", "gigpo")
    assert "--baseline must have a run that is done: " in capsys.readouterr().err


def test_held_out_games_have_a_table_of_their_own():
    rates = [0.1, 0.2, 0.3, 0.4, 0.5]
    run = pl.DataFrame(
        {
            "arm": "grpo",
            "warm": 0,
            "seed": 1,
            "iteration": range(5),
            "env_steps": [0, 3_000, 6_000, 9_000, 12_000],
            "success_rate": rates,
            "sampled_held_out_success_rate": [0.05, None, 0.25, 0.15, None],
        }
    )
    table = held_out_table(run, SETTINGS["easy"])
    assert table.columns[2:] == [
        "training, first",
        "training, last",
        "held out, first",
        "held out, last",
        "held out, mean",
        "pairs",
        "gap to grpo",
        "lowest to highest",
        "p",
    ]
    assert table.row(0) == (
        *("grpo", 1, pytest.approx(0.2), pytest.approx(0.4), 0.05, 0.2),
        # From 0.05 to 0.25 over half of the budget, to 0.15 over a quarter, and there it stays.
        pytest.approx(0.15 / 2 + 0.2 / 4 + 0.15 / 4),
        *(None, None, None, None),
    )
    held_out = pl.col("sampled_held_out_success_rate")
    other = run.with_columns(pl.lit("rloo").alias("arm"), held_out + 0.25)
    both = pl.concat([other, run])
    table = held_out_table(both, SETTINGS["easy"])
    assert table["arm"].to_list() == ["rloo", "grpo"]
    assert table["pairs"].to_list() == [1, None]
    assert table["gap to grpo"].to_list() == [pytest.approx(0.25), None]
    table = held_out_table(both, SETTINGS["easy"], "rloo")
    assert table["gap to rloo"].to_list() == [None, pytest.approx(-0.25)]


def test_a_curve_is_averaged_over_a_pass_where_an_iteration_has_not_all_games():
    assert [SETTINGS[name].window for name in ("easy", "general")] == [3, 4]
    assert replace(SETTINGS["easy"], update_every="group").window == 8
    assert smoothed([0.0, 0.4, 0.0, 0.4, 0.0], 4).tolist() == pytest.approx(
        [0, 0.2, 0.4 / 3] + [0.2] * 2
    )
    assert first_at([0, 10, 20, 30], [0.0, 0.9, 0.0, 0.0], 0.3, 2) == 10


def test_the_store_of_a_run_says_what_there_was_to_learn_from(tmp_path: Path):
    assert signals(tmp_path / "none", "graphgpo") == {}
    store = write_store(tmp_path / "store", worked_example())
    assign_credit(store, CreditSettings(estimators=configure(["graphgpo"])))
    # Five steps start from A, two from C and one from B.
    assert signals(store.root, "graphgpo") == {
        0: {
            "state_group_size": (5 * 5 + 2 * 2 + 1) / 8,
            "alone_share": 1 / 8,
            "degenerate_share": 0.0,
            "zero_share": 0.0,
        }
    }


_UNSEEN = dict.fromkeys(SETTINGS["unseen"].arms, (6e-4, 0.02))


def test_unseen_pairs_begin_from_policies_of_their_own_and_play_alike(tmp_path: Path):
    swept = [*sweep("unseen"), *sweep_rates("unseen", _UNSEEN)]
    pairs = repeats("unseen", _UNSEEN)
    assert len(swept) == 4 * 3
    assert [(cell.warm, cell.arm) for cell in pairs[:4]] == [(1, arm) for arm in _UNSEEN]
    assert {cell.warm for cell in swept} == {0}
    assert [cell.warm for cell in pairs[::4]] == [1, 2, 3, 4, 5]
    configs = [cell.config(tmp_path) for cell in pairs]
    assert {config.iterations for config in configs} == {1}
    assert all(c.evaluate and (c.evaluate.tasks, c.evaluate.samples) == (64, 16) for c in configs)
    assert len({config.evaluate.seed for config in configs if config.evaluate}) == 5
    with_lists, without = configs[2:4]
    same = {"out": with_lists.out, "collect": with_lists.collect}
    assert with_lists.collect.record_admissible
    assert not without.collect.record_admissible
    assert without.changed(**same) == with_lists, "the arms differ in what is recorded alone"
    assert not any(cell.config(tmp_path).evaluate for cell in swept)
    assert {cell.config(tmp_path).collect.tasks for cell in swept} == {96}


def test_a_pass_is_done_with_the_evaluation_of_its_last_policy(tmp_path: Path):
    cell = repeats("unseen", _UNSEEN)[0]
    assert not cell.is_done(15, 40_000)
    assert cell.is_done(16, 1), "whatever its steps"
    swept = sweep("unseen")[0]
    assert not swept.is_done(4, 40_000)
    assert swept.is_done(5, 1)
    _write(tmp_path, cell, range(1_000, 17_000, 1_000), [0.25] * 16)
    assert Runs(out=tmp_path).of(cell) is None
    _end(tmp_path, cell, first=0.1, end=0.3)
    made = Runs(out=tmp_path).of(cell)
    assert made is not None
    made.write_parquet(tmp_path / "unseen.parquet")
    kept = Runs(out=tmp_path / "none", kept=tmp_path).of(cell)
    assert kept is not None
    for found in (made, kept):
        assert ends_of(found).row(0) == ("grpo", 1, 1, 0.1, 0.3, 0.25, 16_000, 160.0)
        assert mean_success(found, cell) == 0.25


def _end(out: Path, cell: Cell, *, first: float, end: float) -> None:
    """Add the two evaluations to a run of one pass."""
    path = out / cell.name / "loop.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0]["sampled_held_out_success_rate"] = first
    last = {"iteration": len(lines), "env_steps": lines[-1]["env_steps"]}
    lines.append(last | {"sampled_held_out_success_rate": end})
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def test_only_whole_pairs_are_reported_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for cell in [*sweep("unseen"), *sweep_rates("unseen", _UNSEEN)]:
        rate = 0.2 if cell.learning_rate == 6e-4 else 0.1
        _write(tmp_path, cell, range(1_000, 7_000, 1_000), [rate] * 6)
    pairs = repeats("unseen", _UNSEEN)
    ends = [0.2, 0.25, 0.3, 0.22, 0.1, 0.25, 0.4, 0.22, 0.9, 0.9]
    for cell, end in zip(pairs, ends, strict=False):
        _write(tmp_path, cell, range(1_000, 17_000, 1_000), [end / 2] * 16)
        _end(tmp_path, cell, first=0.1, end=end)
    kept = tmp_path / "kept"
    options = ("--setting", "unseen", "--out", tmp_path, "--kept", kept, "--save", kept)
    _report(monkeypatch, *options)
    shown = capsys.readouterr().out
    assert "12 of 12 runs of the sweep are done" in shown
    assert "unfinished, nothing is decided: 2 of 5 planned pairs are whole" in shown
    assert "| reach | 0.0006 | 2 | 0.100 | 0.350 | 0.175 | 16,000 | 160 |" in shown
    # 0.1 and 0.3: a mean of 0.2, a standard error of 0.1, and 12.706 of these.
    assert "| reach - grpo | 2 | +0.200 (-1.071 to +1.471) | 2 |" in shown
    table = pl.read_parquet(kept / "unseen.parquet")
    assert set(table["seed"]) == {0, 1, 2}, "the third pair is half"
    _report(monkeypatch, *options[:2], "--out", tmp_path / "none", *options[4:])
    assert capsys.readouterr().out == shown.replace("10 of 20 repeats", "8 of 20 repeats")


def test_pairs_are_made_one_after_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for cell in [*sweep("unseen"), *sweep_rates("unseen", _UNSEEN)]:
        _write(tmp_path, cell, range(1_000, 7_000, 1_000), [0.1] * 6)
    made: list[list[Cell]] = []
    monkeypatch.setattr(run, "_make", lambda runs, cells, count: made.append(list(cells)))
    monkeypatch.setattr("sys.argv", ["run", "--setting", "unseen", "--out", str(tmp_path)])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # `main` sets it
    run.main()
    _, _, *pairs = made  # after the two parts of the sweep
    assert [{cell.warm for cell in cells} for cells in pairs] == [{n} for n in range(1, 6)]
    assert all([cell.arm for cell in cells] == list(_UNSEEN) for cells in pairs)


@given(st.integers(2, 10))
def test_an_interval_has_the_probability_of_students_t(count: int):
    """The density, integrated numerically within the interval of numbers with error 1."""
    gaps = np.linspace(-1, 1, count)
    low, high = interval(gaps)
    error = gaps.std(ddof=1) / np.sqrt(count)
    t, freedom = np.linspace(low / error, high / error, 200_001), count - 1
    scale = math.gamma(count / 2) / math.gamma(freedom / 2) / math.sqrt(freedom * math.pi)
    inside = np.trapezoid(scale * (1 + t**2 / freedom) ** (-count / 2), t)
    assert inside == pytest.approx(0.95, abs=1e-4)


def test_one_pair_has_no_interval_and_more_than_ten_are_refused():
    assert ranged([0.25]) == "+0.250"
    with pytest.raises(ValueError, match="1 to 10 numbers: got 11"):
        interval([0.0] * 11)


@pytest.mark.slow
@pytest.mark.play
def test_a_policy_learns_to_win(tmp_path: Path):
    """A warm policy, and eight or more iterations: the only test that trains a real policy."""
    before, after = quick(tmp_path)
    assert after >= before + RISE
