"""`graphcredit states` as a user types it."""

import json
from pathlib import Path

from tests.cli.in_process import completed as graphcredit
from tests.worlds import trajectory, write_store


def _store(root: Path) -> str:
    rows = [
        *trajectory("x", ["the Hall\x1b[2J", "go", "won"], success=True),
        *trajectory("y", ["The hall\x1b[2J", "go", "won"], success=True),
        *trajectory("z", ["The hall\x1b[2J", "fall", "a pit"]),
    ]
    store = str(write_store(root, rows).root)
    given = ("-e", "grpo", "--set", "merge.normalise=casefold")
    assert graphcredit("credit", store, *given).returncode == 0
    return store


def test_it_shows_texts_and_their_differences(tmp_path: Path):
    result = graphcredit("states", _store(tmp_path / "s"), "--task", "t0")
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert (
        lines[0]
        == "t0 (r0, iteration 0): 3 texts, 2 states but the goal, 1 of them with several texts"
    )
    assert lines[2].endswith(": 3 visits, 2 texts. The most frequent one:")
    assert lines[3:7] == [
        "    The hall\\x1b[2J",
        "  in another one:",
        "    - The hall\\x1b[2J",
        "    + the Hall\\x1b[2J",
    ]


def test_all_of_it_as_json(tmp_path: Path):
    result = graphcredit("states", _store(tmp_path / "s"), "--task", "t0", "--json")
    found = json.loads(result.stdout)
    assert [len(state["texts"]) for state in found["states"]] == [2, 1]


def test_what_is_left_out_is_counted(tmp_path: Path):
    result = graphcredit("states", _store(tmp_path / "s"), "--task", "t0", "--most", "0")
    assert "and 1 state more with several texts" in result.stdout


def test_an_unknown_task_is_wrong_use_and_near_names_are_proposed(tmp_path: Path):
    result = graphcredit("states", _store(tmp_path / "s"), "--task", "task-t0")
    assert result.returncode == 2
    assert "found none of 'task-t0'" in result.stderr
    assert result.stderr.endswith("Did you mean 't0'?\n")


def test_a_rule_that_meets_no_text_is_named(tmp_path: Path):
    store = _store(tmp_path / "s")
    (tmp_path / "s" / "states.toml").write_text("[[ignore]]\ntext = 'no such thing'\n")
    credited = graphcredit("credit", store, "-e", "grpo")
    assert 'no text has what these rules of states.toml mean: ignore 1: "no such thing"' in (
        credited.stderr
    )


def test_without_a_task_there_is_nothing_to_show(tmp_path: Path):
    result = graphcredit("states", _store(tmp_path / "s"))
    assert (result.returncode, "--task must name the task" in result.stderr) == (2, True)


def test_states_by_a_rule_are_written_and_credited(tmp_path: Path):
    store = _store(tmp_path / "s")
    written = graphcredit("states", store, "--set", "effects+last-tool", "--set", "calls")
    assert written.returncode == 0
    lines = written.stdout.splitlines()
    assert lines[0].startswith("r0, effects:")
    assert "  only read: none" in lines
    assert lines[-1] == "`graphcredit credit` takes them with --state: effects.last-tool, calls"
    for state in ("effects+last-tool", "calls"):
        credited = graphcredit("credit", store, "-e", "graphgpo", "--state", state)
        assert credited.returncode == 0
    assert graphcredit("check", store).returncode == 0
    wrong = graphcredit("states", store, "--set", "calls", "--task", "t0")
    assert (wrong.returncode, "--set goes with" in wrong.stderr) == (2, True)
