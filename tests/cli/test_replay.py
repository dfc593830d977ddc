"""`graphcredit replay`: what it prints, and that the store and the audit have it."""

import json
from pathlib import Path

import pytest

from graphcredit.store.layout import open_store
from graphcredit.store.sql.catalog import run_trusted_query
from tests.cli.in_process import run
from tests.worlds import worked_example, write_store

COLLECT = ("--env", "sokoban", "--games", "5x5b1", "--tasks", 2, "--group-size", 3)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    ended = run(
        *("collect", tmp_path / "s", *COLLECT, "--policy", "oracle:0.6"),
        *("--max-steps", 15, "--workers", 0),
    )
    assert ended.exit_code == 0, ended.err
    assert run("credit", tmp_path / "s", "-e", "graphgpo").exit_code == 0
    return tmp_path / "s"


def test_a_replay_is_told_stored_and_audited(store: Path):
    arguments = ("replay", store, "--num-decisions", 12, "--num-plays", 8, "--workers", 0)
    ended = run(*arguments)
    assert ended.exit_code == 0, ended.err
    lines = ended.out.splitlines()
    assert lines[0] == "12 decisions replayed by oracle:0.6, 0 were there already"
    assert "of 12 decisions in 2 tasks matter: |Q - V| is above 2 standard errors" in lines[1]
    assert lines[2].startswith("if none did, ")
    assert lines[-1].startswith("graphgpo_advantage       rank correlation with Q - V")
    again = json.loads(run(*arguments, "--json").out)
    assert (again["num_replayed"], again["num_already_replayed"]) == (0, 12)
    assert (again["is_acting_policy"], again["failures"]) == (True, {})
    assert again["judgement"]["num_decisions"] == 12
    audited = run("audit", store)
    assert "decisions replayed by oracle:0.6, 8 plays:" in audited.out
    (judged,) = json.loads(run("audit", store, "--json").out)["replays"]
    assert judged["matters"] == again["judgement"]["matters"]
    assert judged["settings"] == json.loads(again["settings"])
    assert "0 errors, 0 notices" in run("check", store).out
    sql = "SELECT count(*) AS number FROM replayed WHERE advantage_se > 0"
    assert run_trusted_query(open_store(store), sql).table["number"].to_pylist() == [12]


def test_another_policy_and_what_is_not_reproducible_are_said(store: Path):
    other = run("replay", store, "--num-decisions", 3, "--policy", "random", "--workers", 0)
    assert other.out.splitlines()[0] == (
        "notice: the policy that plays on is not the one that acted: policy 'random' instead of "
        "'oracle:0.6'. The values are those of random"
    )


def test_a_log_that_names_no_policy_is_wrong_use(tmp_path: Path):
    steps = [step | {"task_id": "sokoban-5x5b1-s0"} for step in worked_example()]
    write_store(tmp_path / "s", steps)
    ended = run("replay", tmp_path / "s")
    assert ended.exit_code == 2
    assert "this log does not say who acted" in ended.err
    policy = ("--policy", "random", "--max-steps", 9, "--workers", 0)
    ended = run("replay", tmp_path / "s", *policy)
    assert ended.exit_code == 0
    assert "8 decisions not reproducible, and left out of every number: 8 × another state" in (
        ended.out
    )
    assert ended.out.splitlines()[-1] == "no decision was replayed; 8 not reproducible"
    assert run("replay", tmp_path / "s", "--num-plays", 1, *policy).exit_code == 2
