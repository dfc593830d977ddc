"""What an import says of scores and groups."""

from pathlib import Path
from typing import Any

import pytest

from graphcredit.collector.importers.helpers import learn
from graphcredit.collector.importers.helpers.read import FIRST
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
        ((1, 1), "all 2 judged rollouts succeeded"),
        ((0, 0), "all 2 judged rollouts failed"),
        ((0.5, 1, 0), "3 returns that say nothing of winning"),
        ((10, 100), "2 returns that say nothing of winning"),
        ((-1, 1), None),
        ((1, None), "only one outcome has a verdict"),
    ],
)
def test_scores_that_are_no_wins_are_named(
    tmp_path: Path, scores: tuple[float | None, ...], said_of_them: str | None
):
    notes = notes_of(tmp_path, *map(row, scores))
    words = ("judged rollouts", "nothing of winning", "only one outcome")
    assert (said_of_them or "") in notes
    assert any(word in notes for word in words) == (said_of_them is not None)


def test_the_distribution_of_returns_is_told(tmp_path: Path):
    notes = notes_of(tmp_path, *map(row, (0, 0.25, 1, 1)))
    assert "returns: 0 to 1, mean 0.562, median 0.625 (3 values)" in notes


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
    assert "all 4 rollouts begin with the same answer, 'look'" in notes
    assert "falls into 2 classes that saw different things after the same first act" in notes
    mixed = [row(n % 2, "play", "look", f"task {n}", "go") for n in range(4)]
    assert "classes" not in notes_of(tmp_path / "2", *mixed)


def test_points_of_a_game_are_no_wins(tmp_path: Path):
    """Whoever has 1 point has not won; the store knows nothing of wins, and compares returns."""
    log = write_lines(tmp_path / "a.jsonl", *(row(score, "q", f"a{score}") for score in (3, 1, 0)))
    store = tmp_path / "store"
    said_of_it = run("import", log, store).out
    assert "\n3 compared by their returns\n" in said_of_it
    assert "--success 'reward>=NUMBER'" in said_of_it
    ended = [(step["success"], step["terminated"], step["next_state"]) for step in steps_of(store)]
    assert ended == [(None, True, "[end]")] * 3
    assert "3 steps of 3 rollouts (3 compared by their returns)" in run("credit", store).out
    rows = run("sql", store, "SELECT success_rate, mean_return FROM groups", "--format", "csv").out
    assert rows.splitlines()[1] == ",1.3333333333333333"
    rates = "SELECT count(success_rate) + count(group_success_rate) AS known FROM enriched, nodes"
    assert run("sql", store, rates, "--format", "csv").out.split() == ["known", "0"]
    assert "0 incomplete" in run("check", store).out
    assert "from the same state" in run("why", store).out.lower()
    signs = (
        "SELECT string_agg(sign(reach_advantage)::INT, ' ' ORDER BY reward) AS signs FROM enriched"
    )
    assert run("sql", store, signs, "--format", "csv").out.splitlines()[1] == "-1 -1 1"
    run("export", store, tmp_path / "again.csv")
    run("import", tmp_path / "again.csv", tmp_path / "twice")
    assert [step["success"] for step in steps_of(tmp_path / "twice")] == [None] * 3


@pytest.mark.parametrize(("score", "times"), [(1, 1), (0.5, 2)])
def test_a_log_is_read_again_only_if_its_rewards_are_no_wins(
    score: float, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    log = write_lines(tmp_path / "a.jsonl", row(0, "q", "no"), row(score, "q", "yes"))
    read, opened = learn.read_batches, list[str]()
    monkeypatch.setattr(
        learn,
        "read_batches",
        lambda *given: opened.append(given[0].options.success) or read(*given),
    )
    assert imported(log, tmp_path / "s").num_trajectories == 2
    assert opened == ["auto", "returns"][:times]


def test_a_later_reward_that_is_no_win_is_compared_by_its_return(tmp_path: Path):
    """The first 200 rollouts decide about the log; no later reward becomes a win for it."""
    rows = [row(n % 2, "q", f"{n}") for n in range(FIRST)]
    log = write_lines(tmp_path / "a.jsonl", *rows, row(0.5, "q", "late"))
    report = imported(log, tmp_path / "s")
    assert (report.num_success, report.num_failed, report.num_by_return) == (100, 100, 1)
    log = write_lines(tmp_path / "b.jsonl", *rows[1:], row(0.5, "q", "not late"))
    assert imported(log, tmp_path / "t").num_by_return == FIRST
    assert imported(log, tmp_path / "u", state="effects").num_by_return == FIRST


def _played(wins: dict[str, int], *, has_own_tasks: bool = False) -> list[dict[str, Any]]:
    """Return 20 rollouts of each model, of 20 tasks, of which the first so many are won."""
    return [
        row(float(n < won), f"do {task}", "a", task_id=task, model=model)
        for model, won in wins.items()
        for n in range(20)
        for task in [f"t{n}{model * has_own_tasks}"]
    ]


@pytest.mark.parametrize(
    ("rows", "said_of_them"),
    [
        (_played({"large": 18, "small": 5}), "with model 'small' won 5 of 20, with model 'large'"),
        (_played({"large": 11, "small": 9}), None),
        (_played({"large": 18, "small": 5}, has_own_tasks=True), None),
    ],
)
def test_two_models_of_which_one_wins_the_same_tasks_more_often_are_named(
    tmp_path: Path, rows: list[dict[str, Any]], said_of_them: str | None
):
    notes = notes_of(tmp_path, *rows)
    assert (said_of_them or "") in notes
    assert ("several policies" in notes) == (said_of_them is not None)


def test_models_are_compared_among_themselves_as_the_note_says(tmp_path: Path):
    log = write_lines(tmp_path / "log.jsonl", *_played({"large": 18, "small": 5}))
    told = run("why", log).out
    option = "--columns run_id=model"
    assert option in told.partition("What failures do")[0]
    assert "several policies" not in run("why", log, *option.split()).out
    folders = tmp_path / "folders"
    for each in _played({"large": 18, "small": 5}):
        name = f"{each.pop('model')}/{each['task_id']}.jsonl"
        write_lines(folders / name, each)
    assert "--columns run_id=path:1" in run("why", folders).out
    rows = _played({"large": 18, "small": 5})
    nested = [{**each, "config": {"model": each["model"]}, "model": None} for each in rows]
    assert "with config.model 'small'" in run("why", write_lines(tmp_path / "n.jsonl", *nested)).out
    for model in ("large", "small"):
        its = [{**each, "model": None} for each in rows if each["model"] == model]
        write_lines(tmp_path / "files" / f"{model}.jsonl", *its)
    assert "in 'small' won 5 of 20" in run("why", tmp_path / "files").out
