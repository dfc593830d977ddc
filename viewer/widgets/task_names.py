"""What tasks ask for: the instruction in the first step of one of their rollouts.

An instruction is the line after `Task:`, `Question:` or the like; else the first message of a user.
A game that only shows a place or a picture has none.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from graphcredit.store.files.parse import parse_object
from graphcredit.store.layout import Store
from graphcredit.store.log_text import one_line
from graphcredit.viewer.queries.views import answer

_SHORT, _LONG = 60, 600
_LONG_ID = 24
"""Characters of a task's id from which on its short name comes first."""
_LOOKED_AT = 40_000
"""Characters of a text that are looked at."""
_ASKED = re.compile(
    r"(?:^|\n)[^\w\n]*(?:[\w']+ ){0,3}(?:task|question|goal|instructions?|objective|problem|issue)"
    r"(?: is)?(?: to)?[^\w\n]*:\s*(\S[^\n]*)",
    re.IGNORECASE,
)
_FRAME = re.compile(r"(?:\s*(?:<[\w-]+>(?=\s)|#+ ))+\s*")
"""Tags and marks of a heading before the words of an instruction."""
_GREETING = re.compile(r"(?:hi|hey|hello|welcome|thanks|good \w+)\b[^.!?\n]*[.!?]+\s+(?=\S)", re.I)


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskName:
    """What a task asks for, in the words of its log."""

    instruction: str
    """On one line; empty if the log does not say."""

    @property
    def short(self) -> str:
        """Its beginning without a greeting."""
        return one_line(_GREETING.sub("", self.instruction, count=1), _SHORT)


def task_title(task_id: str, name: TaskName | None) -> str:
    """Return what a list calls a task: its short name and its id, unless one says the other."""
    if name is None:
        return task_id
    if " ".join(task_id.split())[:20] == name.instruction[:20]:
        return name.short
    return f"{name.short} · {task_id}" if len(task_id) > _LONG_ID else f"{task_id} · {name.short}"


def with_instructions(facts: pa.Table, names: Mapping[str, TaskName]) -> pa.Table:
    """Return rows about tasks with a column `instruction`, which is null where none is known."""
    said = [names.get(task) for task in facts["task_id"].to_pylist()]
    texts = [None if name is None else name.instruction for name in said]
    return facts.append_column("instruction", pa.array(texts, pa.string()))


def task_names(store: Store, *, run_id: str, iteration: int) -> dict[str, TaskName]:
    """Return the names of the tasks of an iteration; those without an instruction are not there.

    Raises:
        SchemaError: A shard cannot be read.
    """
    sql = """
        SELECT task_id, first.* FROM (
            SELECT task_id, arg_min(struct_pack(observation, state, extra), trajectory_id) AS first
            FROM steps WHERE step_index = 0 GROUP BY task_id
        )
    """
    rows = answer(store, sql, run_id=run_id, iteration=iteration).to_pylist()
    said = {row["task_id"]: _instruction(row) for row in rows}
    return {
        task: TaskName(instruction=one_line(text, _LONG)) for task, text in said.items() if text
    }


def _instruction(step: Mapping[str, Any]) -> str:
    text = _words_of_task(step)
    frame = _FRAME.match(text)
    return text[frame.end() :] if frame else text


def _words_of_task(step: Mapping[str, Any]) -> str:
    told = _first_message(parse_object(step["extra"]))
    observation, state = step["observation"] or "", step["state"] or ""
    for text in (told, observation, state):
        if asked := _ASKED.search(text[:_LOOKED_AT]):
            return asked[1]
    # What a game shows is its state, or has it in it: no words of a user.
    is_said = observation and state not in observation and observation not in state
    return told or (observation if is_said else "")


def _first_message(extra: Mapping[str, Any]) -> str:
    """Return the first message of a user before the first step; empty without one."""
    seen = extra.get("seen")
    for message in seen if isinstance(seen, list) else ():
        if isinstance(message, dict) and message.get("role") in ("user", "human"):
            return _text(message.get("content"))
    return ""


def _text(content: Any) -> str:
    """Return the text of a message, which may be in parts."""
    if isinstance(content, list):
        return "\n".join(filter(None, map(_text, content)))
    if isinstance(content, dict):
        content = content.get("text")
    return content if isinstance(content, str) else ""
