"""Logs of steps: two episodes, in every shape and file in which people keep them.

x goes north from the hall and takes the mug in the kitchen, y goes south from it and waits in the
cellar. Whatever the shape, the same steps come out.
"""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.rules.states import NOTHING_SEEN
from graphcredit.store.errors import InputError, OptionError
from tests.collector.importers.logs import write_lines
from tests.collector.importers.read_back import brief, imported

Episode = list[tuple[str, str, float]]
X: Episode = [("hall", "north", 0.0), ("kitchen", "take", 1.0)]
Y: Episode = [("hall", "south", 0.0), ("cellar", "wait", 0.0)]
STEPS = sorted([*X, *Y])

ROWS: list[dict[str, Any]] = [
    {"episode": name, "t": t, "obs": state, "action": action, "reward": reward, "done": t == 1}
    for name, episode in (("x", X), ("y", Y))
    for t, (state, action, reward) in enumerate(episode)
]
FRAME = pl.DataFrame(ROWS)


def without(*names: str) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in names} for row in ROWS]


def arrays(episode: Episode, **more: Any) -> dict[str, Any]:
    states, actions, rewards = (list(part) for part in zip(*episode, strict=True))
    return {"observations": states, "actions": actions, "rewards": rewards, **more}


def steps_list(episode: Episode, *names: str, **more: Any) -> dict[str, Any]:
    return {"steps": [dict(zip(names, step, strict=False)) for step in episode], **more}


def with_reset(name: str, episode: Episode) -> list[dict[str, Any]]:
    """Return rows of what each action led to, after a row of the reset."""
    led_to = [*(state for state, _, _ in episode[1:]), "end"]
    rows = [{"action": a, "obs": s} for (_, a, _), s in zip(episode, led_to, strict=True)]
    for row, (_, _, reward) in zip(rows, episode, strict=True):
        row["reward"] = reward
    return [{"ep": name, **row} for row in ({"obs": "hall", "action": None}, *rows)]


SHAPES: dict[str, list[Any]] = {
    "a row a step": ROWS,
    "rows of several episodes are mixed": [ROWS[0], ROWS[2], ROWS[1], ROWS[3]],
    "rows in another order": [ROWS[1], ROWS[0], ROWS[3], ROWS[2]],
    "steps begin again": without("episode", "done"),
    "an end separates episodes": without("episode", "t"),
    "the last observation has a row": [
        *({**row, "done": False} for row in ROWS[:2]),
        {"episode": "x", "t": 2, "obs": "end", "action": None, "reward": None, "done": True},
        *ROWS[2:],
    ],
    "a row of the reset": with_reset("x", X) + with_reset("y", Y),
    "gymnasium's values": [
        {"terminated": row["done"], "truncated": False, "info": {}, **row} for row in without()
    ],
    "lists of steps": [
        [{"state": s, "action": a, "reward": r} for s, a, r in episode] for episode in (X, Y)
    ],
    "an episode with its steps": [
        steps_list(X, "observation", "action", "reward", id=1),
        steps_list(Y, "observation", "action", "reward", id=2),
    ],
    "a score of the episode": [
        steps_list(X, "state", "action", score=1.0),
        steps_list(Y, "state", "action", score=0.0),
    ],
    "its steps are JSON text": [
        {"id": n, "trajectory": json.dumps(steps_list(e, "state", "action", "reward")["steps"])}
        for n, e in enumerate((X, Y))
    ],
    "arrays": [arrays(X), arrays(Y)],
    "arrays of minari": [
        arrays(e, id=n, observations=[*(s for s, _, _ in e), "end"], terminations=[False, True])
        for n, e in enumerate((X, Y))
    ],
    "arrays of several episodes": [arrays(X + Y, terminals=[False, True, False, True])],
    "columns": [FRAME.to_dict(as_series=False)],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gives_the_same_steps(shape: str, tmp_path: Path):
    report = imported(write_lines(tmp_path / "log.jsonl", *SHAPES[shape]), tmp_path / "store")
    assert report.bad_rows == []
    assert (report.num_trajectories, report.num_success, report.num_groups) == (2, 1, 1)
    assert sorted(brief(tmp_path / "store", "state", "action", "reward")) == STEPS


def write_stream(frame: pl.DataFrame, path: Path) -> None:
    table = frame.to_arrow()
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)


FILES: dict[str, Callable[[Path], object]] = {
    "log.csv": FRAME.write_csv,
    "semicolons.csv": lambda path: FRAME.write_csv(path, separator=";"),
    "log.tsv": lambda path: FRAME.write_csv(path, separator="\t"),
    "pandas.csv": lambda path: FRAME.to_pandas().to_csv(path),
    "log.parquet": FRAME.write_parquet,
    "log.feather": FRAME.write_ipc,
    "data-00000-of-00001.arrow": lambda path: write_stream(FRAME, path),
    "list.json": lambda path: path.write_text(json.dumps(ROWS), encoding="utf-8"),
    "columns.json": lambda path: pd.DataFrame(ROWS).to_json(path),
    "split.json": lambda path: pd.DataFrame(ROWS).to_json(path, orient="split"),
}


@pytest.mark.parametrize("name", FILES)
def test_every_file_gives_the_same_steps(name: str, tmp_path: Path):
    FILES[name](tmp_path / name)
    report = imported(tmp_path / name, tmp_path / "store")
    assert (report.num_trajectories, report.num_success, report.bad_rows) == (2, 1, [])
    assert sorted(brief(tmp_path / "store", "state", "action", "reward")) == STEPS


def test_the_names_of_the_store_need_no_option(tmp_path: Path):
    row = {"task_id": "mug", "trajectory_id": "e1", "truncated": False, "thought": "hm"}
    rows = [
        {**row, "step_index": 0, "state": "hall", "observation": "A hall.", "action": "go"}
        | {"next_state": "den", "reward": 0.25, "terminated": False, "success": None},
        {**row, "step_index": 1, "state": "den", "observation": "A den.", "action": "take"}
        | {"next_state": "end", "reward": 0.5, "terminated": True, "success": True}
        | {"is_action_valid": False, "admissible_actions": ["take", "go"], "temperature": 0.5},
    ]
    imported(write_lines(tmp_path / "log.jsonl", *rows), tmp_path / "store")
    store = tmp_path / "store"
    assert brief(store, "task_id", "trajectory_id", "state", "observation", "next_state") == [
        ("mug", "e1", "hall", "A hall.", "den"),
        ("mug", "e1", "den", "A den.", "end"),
    ]
    assert brief(store, "thought", "reward", "success", "is_action_valid", "temperature") == [
        ("hm", 0.25, None, True, None),
        ("hm", 0.5, True, False, 0.5),
    ]


def test_values_become_texts_that_are_equal_for_equal_values(tmp_path: Path):
    states = [[1.0, 0.5], {"b": 2, "a": [1.0]}, {"a": [1], "b": 2.0, "c": None}, 3.0, True]
    rows = [{"t": t, "state": state, "action": [t], "reward": 0} for t, state in enumerate(states)]
    imported(write_lines(tmp_path / "log.jsonl", *rows), tmp_path / "store")
    objects = ['{"a": [1], "b": 2}'] * 2
    assert brief(tmp_path / "store", "state") == [
        (text,) for text in ("[1, 0.5]", *objects, "3", "true")
    ]


def test_an_observation_behind_its_action_is_what_it_led_to(tmp_path: Path):
    row = steps_list([("north", "a kitchen", 0.0)], "action", "observation")
    log = write_lines(tmp_path / "log.jsonl", {"question": "Where is the mug?", **row, "score": 1})
    report = imported(log, tmp_path / "store")
    assert brief(tmp_path / "store", "state", "next_state") == [("Where is the mug?", "a kitchen")]
    assert any("is taken for what its action led to" in note for note in report.notes)
    imported(log, tmp_path / "other", columns="state=observation")
    assert brief(tmp_path / "other", "state") == [("a kitchen",)]


def test_columns_have_the_names_that_the_user_says(tmp_path: Path):
    names = {"episode": "my run", "obs": "where.room", "action": "move", "reward": "points"}
    rows = [{names.get(name, name): value for name, value in row.items()} for row in ROWS]
    rows = [{**row, "where": {"room": row.pop("where.room")}} for row in rows]
    log = write_lines(tmp_path / "log.jsonl", *rows)
    columns = ",".join(
        f"{name}={field}" for name, field in {**names, "state": "where.room"}.items()
    )
    report = imported(log, tmp_path / "store", columns=columns.replace("episode=", "trajectory="))
    assert report.bad_rows == []
    assert sorted(brief(tmp_path / "store", "state", "action", "reward")) == STEPS
    wrong = imported(log, tmp_path / "other", columns="state=where.room,action=move,reward=pts")
    assert [bad.reason for bad in wrong.bad_rows] == [
        "a record must have each field that --columns names: none has pts"
    ]
    log = write_lines(tmp_path / "usual.jsonl", *ROWS)
    with pytest.raises(InputError, match="none of the first ones has pts or room"):
        imported(log, tmp_path / "none", columns="state=room,reward=pts")


def test_numbers_of_states_are_rounded_but_not_those_of_names(tmp_path: Path):
    texts = ["x is -0.04 of 1e-3 m", "v1.2.3 at 0.449"]
    rows = [{"t": t, "state": text, "action": 1, "reward": 0} for t, text in enumerate(texts)]
    imported(write_lines(tmp_path / "log.jsonl", *rows), tmp_path / "store", decimals=1)
    assert brief(tmp_path / "store", "state") == [("x is 0 of 0 m",), ("v1.2.3 at 0.4",)]


@pytest.mark.parametrize(
    ("change", "where", "reason"),
    [
        ({"reward": "much"}, "line 1 to line 2", "the reward of line 2 must be a finite number"),
        ({"episode": "y"}, "line 2", "must have different steps: 2 have 1 (line 2, line 4)"),
        ({"obs": None}, "line 1 to line 2", "line 2 has no state. Fill it"),
    ],
)
def test_a_bad_row_is_named_and_costs_its_episode(
    change: dict[str, Any], where: str, reason: str, tmp_path: Path
):
    rows = [ROWS[0], {**ROWS[1], **change}, *ROWS[2:]]
    report = imported(write_lines(tmp_path / "log.jsonl", *rows), tmp_path / "store")
    (bad,) = report.bad_rows
    assert bad.where == f"{tmp_path / 'log.jsonl'}, {where}"
    assert reason in bad.reason
    assert report.num_trajectories == 1


def test_an_episode_that_lost_a_step_to_damage_is_refused(tmp_path: Path):
    first = write_lines(tmp_path / "a.jsonl", *(dict(ROWS[0], t=t) for t in range(3)))
    lines = first.read_text(encoding="utf-8").splitlines()
    text = "\n".join([lines[0], lines[1][:20], lines[2], *map(json.dumps, ROWS[2:])])
    (tmp_path / "log.jsonl").write_text(text, encoding="utf-8")
    report = imported(tmp_path / "log.jsonl", tmp_path / "store")
    assert [bad.where[-6:] for bad in report.bad_rows] == ["line 2", "line 1"]
    assert "line 3 has step 2 after 0" in report.bad_rows[1].reason
    assert report.num_trajectories == 1


def test_a_cell_is_what_it_says(tmp_path: Path):
    text = 'state,action,t,reward\n"[1, 2]",007,0,1e-3\n"a ""b"", c",12e5,1,\n[click],True,2,x,y\n'
    (tmp_path / "log.csv").write_text("﻿" + text, encoding="utf-8")
    report = imported(tmp_path / "log.csv", tmp_path / "store")
    assert brief(tmp_path / "store", "state", "action", "reward") == [
        ("[1, 2]", "007", 0.001),
        ('a "b", c', "12e5", 0.0),
    ]
    (bad,) = report.bad_rows
    assert bad.where.endswith("log.csv, line 4")
    assert bad.reason.startswith("a row must have 4 cells, as the first line: it has 5")


@pytest.mark.parametrize("names", [("action", "action_input"), ("tool", "tool_input")])
def test_arguments_beside_the_name_of_a_tool_are_part_of_the_action(
    names: tuple[str, str], tmp_path: Path
):
    acts = [("look", {"b": 2, "a": 1}), ("Finish", "in Oslo")]
    steps = [{**dict(zip(names, act, strict=True)), "observation": "a hall"} for act in acts]
    row = {"question": "where?", "success": True, "steps": steps}
    report = imported(write_lines(tmp_path / "x.jsonl", row), tmp_path / "store")
    actions = ['look({"a": 1, "b": 2})', "Finish(in Oslo)"]
    assert [action for (action,) in brief(tmp_path / "store", "action")] == actions
    assert not any("in no step" in note for note in report.notes)


def test_a_name_of_columns_has_one_field():
    with pytest.raises(OptionError, match="must give each name one field"):
        _ = ImportOptions(columns="state=obs,state=seen").names


BLIND: dict[str, str] = {
    "rows.jsonl": "\n".join(map(json.dumps, without("obs"))),
    "rows.csv": pl.DataFrame(without("obs", "done")).write_csv(),
    "arrays.json": json.dumps(
        [
            {"actions": ["north", "take"], "rewards": [0, 1]},
            {"acts": ["south", "wait"], "r": [0, 0]},
        ]
    ),
    "episodes.jsonl": "\n".join(
        json.dumps({"steps": [{"action": a, "reward": r} for _, a, r in episode]})
        for episode in (X, Y)
    ),
}


@pytest.mark.parametrize("name", BLIND)
def test_without_any_state_the_actions_so_far_are_it(name: str, tmp_path: Path):
    (tmp_path / name).write_text(BLIND[name], encoding="utf-8")
    report = imported(tmp_path / name, tmp_path / "store")
    assert sorted(brief(tmp_path / "store", "state", "action", "reward")) == [
        (NOTHING_SEEN, "north", 0.0),
        (NOTHING_SEEN, "south", 0.0),
        ("north", "take", 1.0),
        ("south", "wait", 0.0),
    ]
    assert (report.num_success, report.num_failed) == (1, 1)
    assert any("the actions before each step are its state" in note for note in report.notes)


def test_long_histories_of_actions_are_told_by_their_last_ones_and_a_digest(tmp_path: Path):
    def rows(first: str) -> list[dict[str, Any]]:
        actions = [first, *("x" * 900 for _ in range(3))]
        return [{"action": a, "reward": 0, "step": n} for n, a in enumerate(actions)]

    episodes = [{"steps": rows(first), "task": "t"} for first in ("a", "a", "b")]
    imported(write_lines(tmp_path / "log.jsonl", *episodes), tmp_path / "store")
    states = [state for (state,) in brief(tmp_path / "store", "state")]
    # Three begin; two go on with a, one with b, also where the states are digests.
    assert sorted(Counter(states).values()) == [1, 1, 1, 2, 2, 2, 3]
    assert max(map(len, states)) < 3_000


def test_a_row_of_a_conversation_with_an_action_stays_one(tmp_path: Path):
    row = {"prompt": "hall", "completion": "go", "action": "go", "step": 1, "reward": 1}
    imported(write_lines(tmp_path / "log.jsonl", row), tmp_path / "store")
    assert brief(tmp_path / "store", "state", "action") == [("hall", "go")]
