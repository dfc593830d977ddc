"""`record`: a table of steps becomes a store, whatever its columns are called."""

from pathlib import Path
from typing import Any

import datasets
import polars as pl
import pytest

import graphcredit
from graphcredit.store.errors import InputError, OptionError

ROWS = [
    {"env": "mug", "ep": 1, "obs": "hall", "move": "north", "r": 0.0, "done": False},
    {"env": "mug", "ep": 1, "obs": "kitchen", "move": "take", "r": 1.0, "done": True},
    {"env": "mug", "ep": 2, "obs": "hall", "move": "south", "r": 0.0, "done": True},
]
FRAME = pl.DataFrame(ROWS)

STEPS = [
    ("mug", "hall", "north", 0.0, "kitchen"),
    ("mug", "kitchen", "take", 1.0, "[end: success]"),
    ("mug", "hall", "south", 0.0, "[end: failure]"),
]


KINDS: dict[str, Any] = {
    "polars": lambda: FRAME,
    "lazy": FRAME.lazy,
    "pandas": FRAME.to_pandas,
    "pandas with an index": lambda: FRAME.to_pandas().set_index(["ep"]),
    "arrow": FRAME.to_arrow,
    "stream": lambda: FRAME.to_arrow().to_reader(),
    "datasets": lambda: datasets.Dataset(FRAME.to_arrow()),
    "list": FRAME.to_dicts,
}


def steps_of(store: Path) -> list[tuple[Any, ...]]:
    steps = graphcredit.scan(store, "steps").sort("trajectory_id", "step_index")
    return steps.select("task_id", "state", "action", "reward", "next_state").collect().rows()


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_a_frame_of_any_kind_becomes_a_store(make: Any, tmp_path: Path):
    store = tmp_path / "store"
    report = graphcredit.record(make(), store, task="env", action="move")
    assert (report.num_trajectories, report.num_bad_rows) == (2, 0)
    assert steps_of(store) == STEPS
    assert graphcredit.record(make(), store, task="env", action="move").num_already_there == 2


def test_states_that_are_lists_are_rounded(tmp_path: Path):
    frame = FRAME.with_columns(obs=pl.Series([[0.101, 1.0], [-0.04, 2.0], [0.099, 1.0]]))
    graphcredit.record(frame, tmp_path / "store", action="move", decimals=1)
    assert [row[1] for row in steps_of(tmp_path / "store")] == ["[0.1, 1]", "[0, 2]", "[0.1, 1]"]


def test_what_is_wrong_is_named_by_row_and_column(tmp_path: Path):
    store = tmp_path / "store"
    with pytest.raises(InputError, match=r"lacks moves, and has env, ep.*mean 'move'"):
        graphcredit.record(FRAME, store, action="moves")
    with pytest.raises(OptionError, match=r"import_log has no option 'mode'"):
        graphcredit.record(FRAME, store, mode="move")
    with pytest.raises(
        InputError,
        match=r"row 1 has no action. --columns action=FIELD names it, of its fields env, ep",
    ):
        graphcredit.record(FRAME, store)
    with pytest.raises(InputError, match="it is empty"):
        graphcredit.record(FRAME.head(0), store, action="move")
    endless = FRAME.with_columns(r=pl.Series([0.0, float("inf"), 1.0]))
    report = graphcredit.record(endless, store, action="move")
    assert [(bad.where, bad.reason) for bad in report.bad_rows] == [
        ("row 1 to row 2", "the reward of row 2 must be a finite number: got inf")
    ]
    assert report.num_trajectories == 1


def test_a_table_that_does_not_say_how_its_rollouts_ended_is_refused(tmp_path: Path):
    silent = FRAME.drop("r")
    with pytest.raises(InputError, match=r"the table must say how its rollouts ended: 2 roll"):
        graphcredit.record(silent, tmp_path / "store", action="move")
    with pytest.raises(InputError, match=r"the table must say how its rollouts ended: 2 roll"):
        graphcredit.why(silent, columns={"action": "move"})
    assert not (tmp_path / "store").exists()


def test_a_table_whose_first_rollouts_have_no_verdict_is_recorded(tmp_path: Path):
    rows = [{"ep": n, "obs": "A", "act": "go", "won": n % 2 if n > 24 else None} for n in range(30)]
    report = graphcredit.record(pl.DataFrame(rows), tmp_path / "store", task="obs")
    assert (report.num_success, report.num_failed, report.num_unjudged) == (3, 2, 25)
    with pytest.raises(InputError, match="ended: 25 rollouts without a verdict"):
        graphcredit.record(pl.DataFrame(rows[:25]), tmp_path / "other", task="obs")


def test_a_list_of_chats_is_a_log(tmp_path: Path):
    asked, answered = ({"role": role, "content": "q"} for role in ("user", "assistant"))
    chats = [{"messages": [asked, answered], "task_id": "t", "reward": i % 2} for i in range(4)]
    report = graphcredit.import_log(chats, tmp_path / "store", state="window:2")
    assert (report.num_success, report.num_failed) == (2, 2)
    assert repr(report) == "4 rollouts imported, 0 were there already"
    assert "few to say what they share" in repr(graphcredit.why(chats))
    chats[1]["task_id"] = "<b>"
    chats.append({"messages": 3, "task_id": "<i>"})
    html = graphcredit.import_log(chats, tmp_path / "other")._repr_html_()
    assert "bad rows" in html
    assert "<i>" not in html
