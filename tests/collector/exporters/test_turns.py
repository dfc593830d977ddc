"""`export --to turns`: a line of JSON for each step, with the ids of the log."""

import gzip
import json
from pathlib import Path

from graphcredit.collector.exporters.turns import export_turns
from graphcredit.credit.iteration.settings import settings_of
from graphcredit.credit.options import CreditOptions
from graphcredit.credit.stage import assign_credit as assign
from graphcredit.store import open_store
from tests.cli.in_process import run
from tests.collector.importers.logs import called, said, walk, write_lines
from tests.collector.importers.read_back import imported

WON = walk("garden", id="row-1", split="train", note="n" * 201, nested={"id": 1})
LOST = walk("cellar", "attic", id="row-2", reward=0.0)


def credited(tmp_path: Path, *estimators: str) -> Path:
    source = write_lines(tmp_path / "rows.jsonl", WON, LOST)
    imported(source, tmp_path / "s")
    settings = settings_of(CreditOptions(estimators=estimators))
    assign(open_store(tmp_path / "s"), settings)
    return tmp_path / "s"


def test_each_turn_has_its_advantages_and_where_it_is_from(tmp_path: Path):
    store = credited(tmp_path, "rloo", "gigpo")
    report = export_turns(open_store(store), tmp_path / "turns.jsonl")
    assert (report.estimators, report.num_turns, report.num_trajectories) == (
        ("gigpo", "rloo"),
        3,
        2,
    )
    lines = [json.loads(line) for line in (tmp_path / "turns.jsonl").read_text().splitlines()]
    assert [(line["log"].get("id"), line["step_index"]) for line in lines] == [
        ("row-1", 0),
        ("row-2", 0),
        ("row-2", 1),
    ]
    assert [line["advantages"]["rloo"] for line in lines] == [1.0, -1.0, -1.0]
    assert all(isinstance(line["advantages"]["gigpo"], float) for line in lines)
    first = lines[0]
    assert first["log"] == {"id": "row-1", "split": "train", "task_id": "t", "reward": 1.0}
    assert first.keys() == {
        *("run_id", "iteration", "task_id", "trajectory_id", "step_index", "advantages", "log")
    }
    assert (first["run_id"], first["iteration"], first["task_id"]) == ("imported", 0, "t")


def test_turns_without_credit_are_null_and_counted(tmp_path: Path):
    store = credited(tmp_path, "rloo")
    later = {**walk("garden"), "messages": [said("user", "hall"), called("wait")]}
    imported(write_lines(tmp_path / "rows.jsonl", WON, LOST, later), store)
    ended = run("export", store, tmp_path / "turns.jsonl.gz", "--to", "turns")
    assert ended.exit_code == 0, ended.err
    assert ended.out == "4 turns of 3 rollouts with advantages of rloo; 1 without credit\n"
    assert "the credit of run imported, iteration 0 by rloo is stale" in ended.err
    lines = gzip.decompress((tmp_path / "turns.jsonl.gz").read_bytes()).splitlines()
    assert [json.loads(line)["advantages"]["rloo"] for line in lines] == [1.0, -1.0, -1.0, None]


def test_an_estimator_without_credit_is_refused(tmp_path: Path):
    store = credited(tmp_path, "rloo")
    ended = run("export", store, tmp_path / "out", "--to", "turns", "--estimator", "grpo")
    assert ended.exit_code == 2
    assert "no credit by 'grpo': there is credit by rloo" in ended.err
    assert not (tmp_path / "out").exists()
