"""Evidence on stores: of what is logged, of merges, and of states by a rule."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import examples.orders as orders
import graphcredit
from graphcredit.credit.evidence import judge
from graphcredit.credit.evidence.definition import Definition
from graphcredit.credit.evidence.judge import evidence
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.store.errors import InputError
from tests.cli.in_process import run


def rooms(folder: Path, *, num_groups: int = 24, noise: bool = False, told: bool = True) -> Path:
    """Return a store of walks whose second room decides; noise gives each text a number."""
    rng = np.random.default_rng(0)
    rows: list[dict[str, object]] = []
    for group in range(num_groups):
        for rollout in range(8):
            is_good = rng.random() < 0.5
            won = bool(rng.random() < (0.85 if is_good else 0.15))
            room = is_good if told else rng.random() < 0.5
            texts = ["the hall", f"the {'bright' if room else 'dark'} room", f"door {int(room)}"]
            for step, text in enumerate(texts):
                number = f" at 12:{rng.integers(10, 60)}" if noise else ""
                is_last = step == 2
                row: dict[str, object] = {"task": f"t{group}", "episode": f"{group}-{rollout}"}
                row |= {"t": step, "obs": text + number, "action": f"go {step}"}
                row |= {"reward": float(won & is_last), "done": is_last}
                rows.append(row | {"success": won if is_last else None})
    graphcredit.record(pl.DataFrame(rows), folder)
    return folder


def test_states_that_decide_have_evidence_and_the_report_names_them(tmp_path: Path):
    store = rooms(tmp_path / "store")
    report = evidence(store, [Definition(name="logged")])
    assert (report.num_groups, report.num_mixed, report.num_steps) == (24, 24, 576)
    assert (report.best, report.is_whole) == ("logged", True)
    assert report.groups_needed is None
    _, _, titles, row = str(report).splitlines()
    assert titles.split() == ["definition", "company", "information", "guidance", "evidence"]
    assert row.startswith("logged      ")
    shown = run("evidence", store)
    assert "most evidence, and beyond chance: as logged" in shown.out


def test_a_merge_of_what_a_clock_keeps_apart_has_more_evidence(tmp_path: Path):
    store = rooms(tmp_path / "store", noise=True)
    by = {
        merge: Definition(name=merge, merge=MergeSettings(merge=merge))
        for merge in ("exact", "segments")
    }
    report = evidence(store, list(by.values()))
    assert list(report.knowledge) == ["segments", "exact"]
    told = report.knowledge
    assert told["exact"].company < 0.9 < 0.99 < told["segments"].company
    assert told["segments"].more_than(told["exact"]).is_positive


def test_what_has_the_most_evidence_and_is_not_beyond_chance_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(orders, "TASKS", orders.TASKS[:4])
    monkeypatch.setattr(orders, "CARELESSNESS", (0.8,))
    log = "".join(f"{json.dumps(chat)}\n" for chat in orders.chats())
    (tmp_path / "log.jsonl").write_text(log, encoding="utf-8")
    run("import", tmp_path / "log.jsonl", tmp_path / "store")
    told = json.loads(run("evidence", tmp_path / "store", "--json").out)
    first, *_ = told["definitions"]
    beyond = told["definitions"][first]["beyond_chance"]
    assert told["best"] is None
    assert beyond["value"] <= 2 * beyond["error"]
    shown = run("evidence", tmp_path / "store").out
    assert told["default"] == "--set effects+last-tool"
    assert "for a graph: --set effects+last-tool" in shown
    assert f"most evidence, but not beyond chance: {first}" in shown


def test_a_coin_has_none_and_the_command_says_what_helps(tmp_path: Path):
    store = rooms(tmp_path / "store", told=False)
    report = evidence(store, [Definition(name="logged")])
    assert (report.best, report.default) == (None, None)
    shown = run("evidence", store).out
    assert "for a graph" not in shown
    assert "most evidence, but not beyond chance: " in shown
    assert "--set effects" in shown


def test_groups_in_which_all_end_alike_are_not_judged(tmp_path: Path):
    rows = [
        {"task": "t", "episode": f"e{e}", "t": t, "obs": "s", "action": "a", "reward": 0.0}
        | {"done": t == 1, "success": False if t else None}
        for e in range(3)
        for t in range(2)
    ]
    graphcredit.record(pl.DataFrame(rows), tmp_path / "store")
    report = evidence(tmp_path / "store", [Definition(name="logged")])
    assert (report.num_groups, report.num_mixed, report.best) == (1, 0, None)
    assert "all rollouts ended alike" in run("evidence", tmp_path / "store").out
    with pytest.raises(InputError, match="must have complete rollouts"):
        evidence(tmp_path / "store", [Definition(name="logged")], iteration=7)


def test_a_large_store_is_judged_by_its_first_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = rooms(tmp_path / "store", num_groups=6)
    whole = evidence(store, [Definition(name="logged")])
    monkeypatch.setattr(judge, "BATCH_ROWS", 48)
    part = evidence(store, [Definition(name="logged")], most_steps=48)
    assert (whole.is_whole, part.is_whole) == (True, False)
    assert part.num_groups == 2 < whole.num_groups


def test_states_by_a_rule_are_those_that_are_written(tmp_path: Path):
    """Judged on the way or from their files, states by a rule tell the same."""
    store = rooms(tmp_path / "store")
    before = run("evidence", store, "--json")
    run("states", store, "--set", "last-tool", "--set", "calls")
    after = run("evidence", store, "--json")
    by_rule, stored = (
        pl.read_json(each.out.encode())["definitions"][0] for each in (before, after)
    )
    assert by_rule["--set calls"] == stored["--state calls"]
    assert "--state last-tool" in stored
    assert "--set calls" not in stored
