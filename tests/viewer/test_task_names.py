"""What tasks ask for, in the words of their logs."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from graphcredit.store import Store
from graphcredit.viewer.queries.tasks import tasks_of_kind
from graphcredit.viewer.widgets.task_names import TaskName, task_names, task_title
from tests.viewer.browser import open_page
from tests.viewer.stores import HOSTILE, credited
from tests.worlds import trajectory

SAID = {
    "game": "-= Bar =-\nYour task is to: *put* a mug there.\nA bar.",
    "asked": "Question: Who\tsang it?\nPage: none",
    "framed": "<issue>\n# It crashes\n</issue>",
    "user": "Hi there! I'd like to change my flight. It is late.",
    "hostile": f"Task: {HOSTILE}",
}
SEEN = {
    "chat": [
        {"role": "system", "content": "Task: obey."},
        {"role": "user", "content": [{"type": "text", "text": "ISSUE:\nIt crashes\nat once."}]},
    ],
    "odd": ["x", {"role": "user", "content": 7}],
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a store of tasks that say what they ask for in different places, and one that not."""
    rows = trajectory("board", ["# P #", "left", "#P  #"], task_id="board")
    for task, text in SAID.items():
        state = text if task == "asked" else "A"
        (row,) = trajectory(task, [state, "a", "B"], task_id=task)
        rows.append({**row, "observation": None if task == "asked" else text})
    for task, messages in SEEN.items():
        (row,) = trajectory(task, ["A", "a", "B"], task_id=task)
        rows.append({**row, "extra": json.dumps({"seen": messages})})
    root: Path = tmp_path_factory.mktemp("names") / "s"
    return credited(root, rows)


def test_an_instruction_is_what_follows_its_sign_else_the_words_of_a_user(store: Store):
    names = task_names(store, run_id="r0", iteration=0)
    said = {task: name.instruction for task, name in names.items()}
    assert said.pop("hostile").startswith("<script>alert(1)</script>")
    assert said == {
        "game": "*put* a mug there.",
        "asked": "Who sang it?",
        "framed": "It crashes </issue>",
        "user": SAID["user"],
        "chat": "It crashes",
    }
    assert names["user"].short == "I'd like to change my flight. It is late."


def test_a_title_has_the_short_name_and_the_id():
    name = TaskName(instruction="Hello! " + "Book a flight. " * 9)
    assert name.short.startswith("Book a flight.")
    assert len(name.short) == 60
    assert task_title("24", name) == f"24 · {name.short}"
    assert task_title("x" * 40, name) == f"{name.short} · {'x' * 40}"
    assert task_title("24", None) == "24"
    assert task_title("Fix the bug in a", TaskName(instruction="Fix the bug in a")) == (
        "Fix the bug in a"
    )


def test_tasks_are_listed_and_found_by_what_they_ask_for(store: Store):
    app = open_page(store, "tasks", find="FLIGHT")
    assert list(app.dataframe[0].value["task_id"]) == ["user"]
    app = open_page(store, "tasks", find="board")
    assert list(app.dataframe[0].value["task_id"]) == ["board"]
    app = open_page(store, "graph", task="user")
    assert SAID["user"] in [text.value for text in app.text]
    assert "user · I'd like to change my flight. It is late." in app.selectbox[2].options
    assert not open_page(store, "graph", task="hostile").exception


def test_rows_without_instructions_are_found_by_their_names(store: Store):
    rows = pa.table({"task_id": ["a1", "b2"]})
    assert tasks_of_kind(rows, "all", "B")["task_id"].to_pylist() == ["b2"]
