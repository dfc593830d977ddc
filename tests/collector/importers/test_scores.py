"""Scores of the states after turns: --score, and what formats have without being asked."""

from pathlib import Path
from typing import Any

import pytest

from graphcredit.store.errors import InputError
from tests.collector.importers.logs import episode, said, write_lines
from tests.collector.importers.read_back import brief, imported


def chat(*scores: object, **row: Any) -> dict[str, Any]:
    """Return a row with two answers, and a result of the first; scores are fields of messages."""
    given = [{"score": score} for score in (*scores, None, None, None)]
    messages = [
        said("user", "q"),
        said("assistant", "a") | given[0],
        said("user", "seen") | given[1],
        said("assistant", "b") | given[2],
    ]
    return {"messages": messages, "task_id": "t", "reward": 1.0, **row}


def scores(tmp_path: Path, *rows: dict[str, Any], **options: Any) -> list[float | None]:
    """Return the scores of the steps that rows become."""
    imported(write_lines(tmp_path / "log.jsonl", *rows), tmp_path / "store", **options)
    return [score for (score,) in brief(tmp_path / "store", "score")]


@pytest.mark.parametrize(
    ("row", "option", "expected"),
    [
        (chat(turn_scores=[0.25, None]), "auto", [0.25, None]),
        (chat(info={"step_scores": [1, 2]}), "auto", [1.0, 2.0]),
        (chat(info={"mine": [0.5, -1]}), "info.mine", [0.5, -1.0]),
        (chat(0.5, None, 0.75), "score", [0.5, 0.75]),
        (chat(None, 0.5, None), "score", [0.5, None]),  # of the result that followed
        (chat(0.5, 0.75, None), "auto", [None, None]),  # whose score it is, nobody says
        (chat(turn_rewards=[0.5, 1.0]), "auto", [None, None]),
        (chat(turn_rewards=[0.5, 1.0]), "turn_rewards", [0.5, 1.0]),
    ],
)
def test_scores_are_those_of_the_turns(
    tmp_path: Path, row: dict[str, Any], option: str, expected: list[float | None]
):
    assert scores(tmp_path, row, score=option) == expected


def test_a_list_of_rewards_that_is_named_as_scores_is_no_unused_reward(tmp_path: Path):
    log = write_lines(tmp_path / "log.jsonl", chat(turn_rewards=[0.5, 1.0]))
    notes = imported(log, tmp_path / "a").notes
    assert any("--reward turns uses them" in note for note in notes)
    notes = imported(log, tmp_path / "b", score="turn_rewards").notes
    assert not any("--reward turns uses them" in note for note in notes)
    assert any(note.endswith("; 2 steps with a score") for note in notes)
    assert brief(tmp_path / "b", "reward") == [(0.0,), (1.0,)]


def test_a_trace_has_scores_of_all_its_branches(tmp_path: Path):
    # The first of three answers is of a branch that was given up.
    trace = episode(info={"turn_rewards": [9.0, 0.25, None]})
    assert scores(tmp_path, trace, score="info.turn_rewards") == [0.25, None]


def test_steps_have_a_score_beside_their_reward(tmp_path: Path):
    rows = [
        {"episode": 1, "t": t, "obs": f"o{t}", "action": "go", "reward": r, "score": s, "done": t}
        for t, (r, s) in enumerate([(0.0, 3.0), (1.0, None)])
    ]
    assert scores(tmp_path, *rows) == [3.0, None]


def test_a_score_in_the_place_of_the_reward_is_the_reward(tmp_path: Path):
    rows = [
        {"episode": 1, "t": t, "obs": f"o{t}", "action": "go", "score": 0.5 + t, "done": t}
        for t in (0, 1)
    ]
    assert scores(tmp_path, *rows) == [None, None]
    assert brief(tmp_path / "store", "reward") == [(0.0,), (1.5,)]


def test_what_is_no_list_of_scores_is_counted_or_named(tmp_path: Path):
    short = chat(turn_scores=[0.5])
    log = write_lines(tmp_path / "log.jsonl", short, chat(task_id="u", turn_scores=["good", 1]))
    report = imported(log, tmp_path / "auto")
    (reason,) = report.left_out
    assert reason.startswith("list of scores that is not a number or null for each turn")
    assert report.left_out[reason] == 2
    report = imported(log, tmp_path / "named", score="turn_scores")
    assert [row.reason for row in report.bad_rows] == [
        "turn_scores must have a score or null for each of the 2 turns: it has 1",
        "turn_scores must be a finite number: got 'good'",
    ]


def test_a_field_that_no_record_has_is_an_error_and_one_that_some_lack_a_note(tmp_path: Path):
    with pytest.raises(InputError, match=r"import\.score must name .*none of the first 1 .*'mine'"):
        scores(tmp_path, chat(), score="mine")
    log = write_lines(tmp_path / "log.jsonl", chat(), chat(mine=[1, 2]))
    notes = imported(log, tmp_path / "some", score="mine").notes
    assert "1 rollout without a score at mine" in notes


def test_a_score_out_of_range_costs_its_row(tmp_path: Path):
    report = imported(
        write_lines(tmp_path / "l.jsonl", chat(turn_scores=[1e30, 0])), tmp_path / "s"
    )
    assert "score must be a number from -1e+24 to 1e+24" in report.bad_rows[0].reason


def parallel(**row: Any) -> dict[str, Any]:
    """Return a row of two turns whose first answer is logged as two calls, and its results."""
    calls = [
        {"id": n, "type": "function", "function": {"name": "look", "arguments": n}} for n in "xy"
    ]
    answers = [said("assistant", "") | {"tool_calls": [call]} for call in calls]
    results = [said("tool", "seen") | {"tool_call_id": n} for n in "xy"]
    return {"messages": [said("user", "q"), *answers, *results, said("assistant", "b")], **row}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (parallel(turn_rewards=[0.25, 0.5]), [0.25, 0.5]),
        (parallel(turn_rewards=[0.25, 0.5, 1.0]), [0.75, 1.0]),  # one for each message of an answer
        (chat(turn_rewards=[9.0, 0.25, 9.0, 0.5]), [0.25, 0.5]),  # one for each message of the log
    ],
)
def test_rewards_of_messages_are_those_of_their_turns(
    tmp_path: Path, row: dict[str, Any], expected: list[float]
):
    imported(write_lines(tmp_path / "log.jsonl", row), tmp_path / "store", reward="turns")
    assert brief(tmp_path / "store", "reward") == [(reward,) for reward in expected]


@pytest.mark.parametrize("row", [parallel(turn_rewards=[0.0] * 6), chat(turn_rewards=[1.0] * 3)])
def test_rewards_of_no_known_turns_are_counted(tmp_path: Path, row: dict[str, Any]):
    report = imported(write_lines(tmp_path / "log.jsonl", row), tmp_path / "store")
    assert report.left_out == {
        "list of rewards with another length than the turns: no turn has a reward": 1
    }
