"""What an import says of scores and groups, and relative success."""

from pathlib import Path
from typing import Any

import pytest

from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.preview import preview_log
from graphcredit.store.errors import InputError, OptionError
from tests.cli.in_process import run
from tests.collector.importers.logs import said, write_lines
from tests.collector.importers.read_back import imported, steps_of


def row(score: float | None, *texts: str, **more: Any) -> dict[str, Any]:
    """Return a rollout whose messages take turns, the user first."""
    messages = [said("assistant" if n % 2 else "user", text) for n, text in enumerate(texts)]
    return {"messages": messages or [said("user", "q"), said("assistant", "a")], **more} | (
        {} if score is None else {"reward": score}
    )


def notes_of(tmp_path: Path, *rows: dict[str, Any], **options: Any) -> str:
    """Import rows, each with a text of its own, and return the notes."""
    rows = tuple({**each, "id": n} for n, each in enumerate(rows))
    return "\n".join(
        imported(write_lines(tmp_path / "a.jsonl", *rows), tmp_path / "s", **options).notes
    )


@pytest.mark.parametrize(
    ("scores", "said_of_them"),
    [
        ((0, 1), None),
        ((1, 1), "all 2 judged trajectories succeeded"),
        ((0, 0), "all 2 judged trajectories failed"),
        ((0.5, 1, 0), "1 return between 0 and 1: compared as they are"),
        ((10, 100), "returns are not between 0 and 1"),
        ((-1, 0), "returns are not between 0 and 1"),
        ((1, None), "only one outcome has a verdict"),
    ],
)
def test_scores_that_are_no_wins_are_named(
    tmp_path: Path, scores: tuple[float | None, ...], said_of_them: str | None
):
    notes = notes_of(tmp_path, *map(row, scores))
    words = ("judged trajectories", "between 0 and 1", "only one outcome")
    assert (said_of_them or "") in notes
    assert any(word in notes for word in words) == (said_of_them is not None)


def test_the_distribution_of_returns_is_told(tmp_path: Path):
    notes = notes_of(tmp_path, *map(row, (0, 0.25, 1, 1)))
    assert "returns: 0 to 1, mean 0.562, median 0.625 (3 values)" in notes


@pytest.mark.parametrize(
    ("rule", "won"),
    [("median", [False, False, True, True]), ("top:0.25", [False, False, False, True])],
)
def test_success_may_be_relative(tmp_path: Path, rule: str, won: list[bool]):
    rows = [row(score, "q", f"a{score}") for score in (10, 40, 60, 90)]
    imported(write_lines(tmp_path / "a.jsonl", *rows), tmp_path / "s", success=rule)
    steps = sorted(steps_of(tmp_path / "s"), key=lambda step: step["reward"])
    assert [step["success"] for step in steps] == won


def test_relative_success_needs_rewards_and_a_share(tmp_path: Path):
    log = write_lines(tmp_path / "a.jsonl", row(None))
    with pytest.raises(InputError, match="must have rewards to compare"):
        imported(log, tmp_path / "s", success="median")
    with pytest.raises(OptionError, match="a share between 0 and 1"):
        imported(log, tmp_path / "s", success="top:25")


def test_the_field_of_the_groups_and_others_are_named(tmp_path: Path):
    rows = [row(n % 2, f"hi {n % 4}", "a", weather=f"sun {n % 2}") for n in range(4)]
    notes = notes_of(tmp_path, *rows)
    assert "groups by the prompt (4). weather has 2 values in 4 records: --group weather" in notes
    twice = notes_of(tmp_path / "3", *rows, *rows)
    assert "--group weather" not in twice, "prompts that recur are groups already"
    again = [{**each, "task_id": "t"} for each in rows]
    assert "groups by task_id (4)" in notes_of(tmp_path / "2", *again)


def test_an_answer_that_all_begin_with_is_named(tmp_path: Path):
    rows = [row(n % 2, "play", "look", f"task {n % 2}", "go") for n in range(4)]
    notes = notes_of(tmp_path, *rows)
    assert "all 4 trajectories begin with the same answer, 'look'" in notes
    assert "falls into 2 classes that saw different things after the same first act" in notes
    mixed = [row(n % 2, "play", "look", f"task {n}", "go") for n in range(4)]
    assert "classes" not in notes_of(tmp_path / "2", *mixed)


def test_points_of_a_game_are_no_wins(tmp_path: Path):
    for scores, are_returns in (((3, 17, 0), True), ((-1, 1, 1), False), ((0, 0.4, 1), False)):
        log = write_lines(tmp_path / "a.jsonl", *map(row, scores))
        assert preview_log(log, ImportOptions(), 9).report.are_returns == are_returns
    log = write_lines(tmp_path / "a.jsonl", *map(row, (3, 17, 0)))
    assert "\n3 compared by their returns, 0 truncated" in run("import", log, "--try", 9).out
