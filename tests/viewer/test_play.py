"""A trajectory that moves over the graph."""

from pathlib import Path
from typing import Any

import pytest

from graphcredit.store import Store
from graphcredit.store.sql.catalog import run_trusted_query
from graphcredit.viewer.graph import play as module
from graphcredit.viewer.graph.facts import with_shown
from graphcredit.viewer.graph.play import LONGEST, Play, play_of
from graphcredit.viewer.queries.graphs import task_steps
from graphcredit.viewer.queries.trajectory import steps as trajectory_steps
from tests.viewer.stores import HOSTILE, Shared, credited, hostile
from tests.worlds import worked_example

HERE: dict[str, Any] = {"run_id": "r0", "iteration": 0}
COLUMN = "graphgpo_advantage"


def _play(store: Store, trajectory_id: str, task: str = "t0") -> Play:
    steps = with_shown(task_steps(store, **HERE, task_id=task), COLUMN, None)
    texts = trajectory_steps(store, **HERE, trajectory_id=trajectory_id)
    return play_of(steps, texts, trajectory_id)


def test_its_moments_are_the_start_and_each_step_with_credit_and_texts(shared: Shared):
    play = _play(shared(worked_example), "x")
    sql = f"""
        SELECT state_id, next_state_id, action, state, next_state, {COLUMN} AS credit
        FROM enriched WHERE trajectory_id = 'x' ORDER BY step_index
    """
    rows = run_trusted_query(shared(worked_example), sql).table.to_pylist()
    assert [moment.at for moment in play.moments] == [
        f"n{rows[0]['state_id']}",
        *(f"n{row['next_state_id']}" for row in rows),
    ]
    assert [moment.by for moment in play.moments] == [
        None,
        *(f"e{row['state_id']}-{row['next_state_id']}" for row in rows),
    ]
    assert [moment.head for moment in play.moments] == [
        "Start",
        *(f"Step {i}: {row['action']}  {row['credit']:+.2f}" for i, row in enumerate(rows)),
    ]
    seen = [rows[0]["state"], *(row["next_state"] for row in rows)]
    assert [moment.seen for moment in play.moments] == seen
    assert play.name == "x"


def test_a_trajectory_that_is_not_in_the_graph_has_none(shared: Shared):
    assert _play(shared(worked_example), "nobody") == Play()


def test_a_long_text_is_cut_and_says_by_how_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "LONGEST", 3)
    rows = [{**row, "thought": "12345"} for row in worked_example()]
    thoughts = [moment.thought for moment in _play(credited(tmp_path / "s", rows), "x").moments]
    assert thoughts[0] == ""
    assert set(thoughts[1:]) == {"123… (2 more characters)"}


def test_what_is_hidden_in_a_text_is_made_visible(shared: Shared):
    play = _play(shared(hostile), "x" + HOSTILE, HOSTILE)
    assert len(HOSTILE) < LONGEST
    for moment in play.moments[1:]:
        assert "\x1b" not in moment.head + moment.thought + moment.seen
        assert "<script>alert(1)</script>" in moment.thought
