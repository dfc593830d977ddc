"""The shapes of logs of steps: a row a step, an episode with its steps, or one with arrays."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from graphcredit.collector.importers.formats.chat_rows import GROUPS
from graphcredit.collector.importers.formats.game_records import step_of, steps_of_replay
from graphcredit.collector.importers.formats.row_messages import list_of, pair_of
from graphcredit.collector.importers.formats.row_verdicts import REWARDS, SUCCESSES
from graphcredit.collector.importers.messages.values import (
    RecordError,
    fields_of,
    first_of,
    items_of,
    parse_json,
    snake_case,
)
from graphcredit.store.schema import STEP_COLUMNS

NAMES: Mapping[str, tuple[str, ...]] = {
    **{column.name: (column.name, *column.in_logs) for column in STEP_COLUMNS if column.in_logs},
    "task_id": ("task_id", *GROUPS, "env_name", "env", "environment", "game"),
    "arguments": (
        *("action_input", "action_args", "action_arguments", "action_params", "tool_input"),
        *("tool_args", "tool_arguments", "tool_params", "arguments", "args"),
    ),
    "done": (
        *("done", "dones", "terminal", "terminals", "is_terminal", "is_last", "is_done"),
        *("finished", "next.done"),
    ),
}
"""Part of a step to the fields that may have it, those of an episode's arrays among them."""

STEP_LISTS = (
    *("steps", "trajectory", "transitions", "episode", "rollout", "history", "frames", "trace"),
)
"""Fields of an episode that may have its steps."""

_RESULTS = ("result", "tool_result", "tool_output", "tool_response", "output", "response")
ENDS = ("done", "terminated", "truncated")
SEEN = ("state", "observation", "next_state")
"""Parts that say what an action was chosen in, or led to."""

_PLACES = (*ENDS, "trajectory_id", "step_index")
_SIGNS = ("reward", *_PLACES, "next_state")
"""Parts without which a state and an action are no log of steps."""

_LISTS, _NESTED = frozenset(STEP_LISTS), frozenset({list, dict})

Row = Mapping[str, Any]


@lru_cache(maxsize=1024)
def _present(fields: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return the fields that may have each part, of those that a row has."""
    known = {snake_case(field): field for field in fields} | {field: field for field in fields}
    return {name: tuple(known[n] for n in names if n in known) for name, names in NAMES.items()}


def fields_by_part(row: Row) -> Mapping[str, tuple[str, ...]]:
    """Return the fields of a row that are for each part, though they may be null there."""
    return _present(tuple(row))


def fields_for(row: Row, name: str) -> tuple[str, ...]:
    """Return those for one part."""
    return _present(tuple(row))[name]


def part(row: Row, name: str) -> Any:
    """Return a part of a step; None if no field has it."""
    return first_of(row, fields_for(row, name))


def has_part(row: Row, name: str) -> bool:
    """Return whether a field of a row is for a part, even if it is null there."""
    return bool(fields_for(row, name))


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """Steps of a record."""

    said: Row
    """What is said of their episode beside them."""
    rows: list[Row]
    is_row: bool = False
    """Whether the record is a step, and others are of the same episode."""


def shape_of(value: object, *, among: bool = False) -> Shape | None:
    """Return the steps of a record; None if it is no log of steps.

    Args:
        value: The record.
        among: Whether it is in a log of steps. A row that lacks a state or an action is one then:
            that of a reset, or one to be refused with its episode.
    """
    if _are_steps(value, {}):
        return Shape(said={}, rows=cast("list[Row]", value))
    row = fields_of(value)
    if "data" in row and (step := step_of(row)) is not None:
        return Shape(said={}, rows=[step], is_row=True)
    if (steps := steps_of_replay(row)) is not None:
        return Shape(said={}, rows=steps)
    if not (_NESTED.isdisjoint(map(type, row.values())) and _LISTS.isdisjoint(row)):
        shape = _of_lists(_with_lists(row))
        if shape is not None:
            return shape
    is_step = (among or _is_step(row)) and _has_sign(row)
    return Shape(said={}, rows=[row], is_row=True) if is_step else None


def _of_lists(row: Row) -> Shape | None:
    """Return the steps of an episode, which has them as objects or as arrays."""
    for name in STEP_LISTS:
        steps = row.get(name)
        steps = parse_json(steps) if isinstance(steps, str) else steps
        if not isinstance(steps, list):
            continue
        others = {field: other for field, other in row.items() if field != name}
        steps = [_with_result(fields_of(step)) for step in items_of(steps)]
        if _are_steps(steps, others):
            return Shape(said=others, rows=steps)
    return _of_arrays(row) if _has_arrays(row) else None


def _are_steps(value: object, others: Row) -> bool:
    items = [fields_of(item) for item in items_of(value)]
    if not items:
        return False
    is_judged = any(others.get(name) is not None for name in (*REWARDS, *SUCCESSES))
    # Without a sign, a state is enough; SWE-agent's are beside what the model answered.
    are_stated = all(has_part(item, "state") and "response" not in item for item in items)
    are_all = all(map(_is_step, items)) or all(map(_is_blind, items))
    return are_all and (is_judged or are_stated or any(map(_has_sign, items)))


def _with_result(row: Row) -> Row:
    """Return a step whose result of a tool is the observation that it led to."""
    is_call = first_of(row, ("tool", "tool_name")) is not None and has_part(row, "arguments")
    if not is_call or has_part(row, "observation") or has_part(row, "state"):
        return row
    result = next((name for name in _RESULTS if name in row), None)
    return row if result is None else {**row, "observation": row[result]}


def _is_step(row: Row) -> bool:
    is_seen = any(part(row, name) is not None for name in SEEN)
    return has_part(row, "action") and (
        is_seen or (_is_blind(row) and any(has_part(row, name) for name in _PLACES))
    )


def _is_blind(row: Row) -> bool:
    """Return whether a row is an action with its reward, and nothing of what was seen.

    The actions before it are its state.
    """
    is_judged = type(part(row, "reward")) in (int, float) and part(row, "action") is not None
    return is_judged and _says_nothing_seen(row)


def _says_nothing_seen(row: Row) -> bool:
    """Return whether no field may have a state, also of another name, and no text of a model."""
    is_named = any(len(name) > 1 for name in fields_for(row, "action"))
    has_seen = any("state" in name.lower() or "obs" in name.lower() for name in row)
    has_seen |= any(has_part(row, name) for name in SEEN)
    return is_named and not has_seen and list_of(row) is None and pair_of(row) is None


def _with_lists(row: Row) -> Row:
    """Return columns as lists, where pandas writes them as objects of numbers."""
    if not isinstance(next(iter(row.values()), None), Mapping):
        return row
    objects = [fields_of(value) for value in row.values()]
    numbers = [str(number) for number in range(len(objects[0]))] if objects else []
    if numbers and all(list(each) == numbers for each in objects):
        return {name: list(each.values()) for name, each in zip(row, objects, strict=True)}
    return row


def _has_sign(row: Row) -> bool:
    known = fields_by_part(row)
    return any(known[name] for name in _SIGNS)


def _has_arrays(row: Row) -> bool:
    """Return whether a row has all actions and states of an episode; an action may be an array."""
    actions = part(row, "action")
    if not isinstance(actions, list):
        return False
    length = len(items_of(actions))
    states = first_of(row, (*NAMES["state"], *NAMES["observation"]))
    if _says_nothing_seen(row):  # the actions before each are its state
        return _length(part(row, "reward")) == length > 1
    if not isinstance(states, list | Mapping):
        return False
    if _length(states) not in (length, length + 1) or isinstance(part(row, "step_index"), int):
        return False
    others = [_length(part(row, name)) for name in ("reward", *ENDS)]
    are_texts = all(isinstance(action, str) for action in items_of(actions))
    return are_texts or length in others or any(name in row for name in ("actions", "acts"))


def _of_arrays(row: Row) -> Shape:
    length = len(part(row, "action"))
    for name in ("action", "reward", *ENDS):
        values = part(row, name)
        if isinstance(values, list) and _length(values) not in (length, length + 1):
            raise RecordError(
                f"the arrays of an episode must have a value for each of its {length} actions: "
                f"{name} has {_length(values)}"
            )
    cut = {name: value for name, value in row.items() if _length(value) in (length, length + 1)}
    rows: list[dict[str, Any]] = []
    for number in range(length):
        rows.append({name: _at(value, number) for name, value in cut.items()})
        for name in {"infos", "info"} & cut.keys():  # the first is that of the reset
            rows[-1]["info"] = _at(cut[name], number + (_length(cut[name]) or 0) - length)
    seen = next((n for n in (*NAMES["state"], *NAMES["observation"]) if n in cut), None)
    if seen is not None and _length(cut[seen]) == length + 1:
        no_action = {name: None for name in NAMES["action"] if name in row}
        rows.append({**no_action, seen: _at(cut[seen], length)})
    said = {name: value for name, value in row.items() if name not in cut}
    return Shape(said=said, rows=[*rows])


def _length(value: object) -> int | None:
    """Return the number of steps that an array, or an object of arrays, is about."""
    if isinstance(value, Mapping):
        lengths = {_length(each) for each in fields_of(value).values()}
        return lengths.pop() if len(lengths) == 1 else None
    return len(items_of(value)) if isinstance(value, list) else None


def _at(value: Any, number: int) -> Any:
    if isinstance(value, Mapping):
        return {name: _at(each, number) for name, each in fields_of(value).items()}
    return value[number]
