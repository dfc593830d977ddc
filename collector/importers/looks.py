"""What a file that is no log looks like, what it lacks, and what to try next."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from graphcredit.collector.importers.formats.row_messages import ANSWERS, LISTS, PROMPTS
from graphcredit.collector.importers.formats.step_shapes import (
    SEEN,
    STEP_LISTS,
    fields_for,
    has_part,
)
from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.chat import is_chat
from graphcredit.collector.importers.messages.values import fields_of, items_of, short, without
from graphcredit.collector.importers.recognition import readings, rollouts_in
from graphcredit.collector.importers.table import candidates

_SHOWN = 10
"""Fields that are named."""

_DEPTH = 4
_FORMATS = "docs/formats.md lists what is read"
_KINDS: Mapping[type, str] = {
    str: "text",
    bool: "true or false",
    int: "number",
    float: "number",
    dict: "object",
    list: "list",
    type(None): "null",
}


def looks_of(records: Sequence[Record]) -> str:
    """Return sentences on a file, by its first records.

    Args:
        records: They are sound, and no format reads them.
    """
    if not records:
        return f"it has no records. {_FORMATS}"
    value = records[0].value
    if not isinstance(value, Mapping):
        what = _list(value) if isinstance(value, list) else f"a {_kind(value)}"
        return f"the first record is {what}, and must be an object. {_FORMATS}"
    row = cast("Mapping[str, Any]", value)
    fields = [f"{name} ({_kind(item)})" for name, item in row.items()]
    more = f" and {len(fields) - _SHOWN} more" if len(fields) > _SHOWN else ""
    advice = _taken_out(row, records) or _advice(row)
    return f"the first record has {', '.join(fields[:_SHOWN])}{more}. {advice}"


def _kind(value: object) -> str:
    return _list(cast("list[object]", value)) if isinstance(value, list) else _KINDS[type(value)]


def _list(items: list[object]) -> str:
    if not items:
        return "empty list"
    kind = _KINDS[type(items[0])]
    return f"list of {kind if kind in ('text', 'null', 'true or false') else kind + 's'}"


def _advice(row: Mapping[str, Any]) -> str:
    """Return what the nearest format lacks, and what to try."""
    lists = [name for name in row if isinstance(row[name], list) and row[name]]
    known = [name for name in (*LISTS, *STEP_LISTS) if name in lists]
    named = known or [name for name in lists if _has_a_part(row[name][0])]
    if named:
        return _advice_on_list(named[0], row[named[0]][0], is_known=bool(known))
    has_prompt, has_answer = (any(row.get(n) for n in names) for names in (PROMPTS, ANSWERS))
    if has_answer and not has_prompt:
        return (
            "It has an answer, and lacks what the model was given: log the messages or the prompt "
            "of each request beside it"
        )
    if has_prompt and not has_answer:
        return (
            f"It has a prompt, and lacks an answer ({', '.join(ANSWERS[:4])}, …). If that has "
            "another name: --columns completion=FIELD"
        )
    has_action = bool(fields_for(row, "action"))
    if has_action or fields_for(row, "state") or fields_for(row, "observation"):
        if has_action and any(has_part(row, name) for name in SEEN):
            return (
                "It may be a step, and lacks a sign of where it stands (episode, step, reward, "
                "done): --columns trajectory=FIELD, or trajectory=path if each file is a rollout"
            )
        missing = "state" if has_action else "action"
        return (
            f"It may be a step, and lacks its {missing}: --columns {missing}=FIELD names it; with "
            "commas also task=FIELD, reward=FIELD, and trajectory=FIELD, or trajectory=path if "
            "each file is a rollout"
        )
    if not any(isinstance(item, str | list | dict) for item in row.values()):
        return (
            f"Numbers alone are no log of steps: name them with --columns, if they are. {_FORMATS}"
        )
    return (
        "It has no messages, no prompt with its answer, and no state with its action; fields of "
        "these with other names can be named: --columns messages=FIELD, or --columns "
        f"state=FIELD,action=FIELD,trajectory=FIELD,task=FIELD,reward=FIELD. {_FORMATS}"
    )


def _has_a_part(item: object) -> bool:
    row = fields_of(item)
    return any(fields_for(row, name) for name in ("state", "observation", "action"))


def _advice_on_list(name: str, first: object, *, is_known: bool) -> str:
    """Return what the items of a list lack to be messages or steps."""
    must = (
        f"`{name}` must be a list of messages with a role and a content, or of steps with a state "
        "and an action: its"
    )
    if not isinstance(first, Mapping):
        return f"{must} first item is {short(first)}. --columns names other fields"
    row = cast("Mapping[str, Any]", first)
    has_state = fields_for(row, "state") or fields_for(row, "observation")
    missing = ["state"] * (not has_state) + ["action"] * (not fields_for(row, "action"))
    options = [f"steps={name}"] * (not is_known) + [f"{part}=FIELD" for part in missing]
    said = f"{must} items have {', '.join(list(row)[:_SHOWN])}"
    if not missing:
        return f"{said}. As steps they lack a reward, or their episode a reward or a verdict"
    lacks = " and the ".join(missing)
    return f"{said}. As steps they lack the {lacks}, which --columns {','.join(options)} names"


_Path = tuple[tuple[str, bool], ...]
"""Names of fields, each with whether all items of its list are meant."""


def _taken_out(row: Mapping[str, Any], records: Sequence[Record]) -> str | None:
    """Return the command that takes a log out of records, which was tried on these."""
    for path in _paths(row, (), _DEPTH):
        others = without(row, (path[0][0],))
        is_with = not all(isinstance(value, list) for value in others.values())
        made = [each for record in records for each in _made(record, path, is_with=is_with)]
        for known in candidates(made[0].value, made[0].path):
            rollouts = [each for _, read in readings(known, made) for each in rollouts_in(read)]
            num_steps = sum(message.is_answer for each in rollouts for message in each.messages)
            is_judged = any((each.reward, each.success) != (None, None) for each in rollouts)
            if num_steps > 1 and is_judged and known.name != "message-lines":
                at = "".join(f".{_quoted(name)}{'[]' * is_each}" for name, is_each in path)
                taken = f"del(.{_quoted(path[0][0])}) + ({at})" if is_with else at
                command = f"jq -c '{taken}' FILE > records.jsonl"
                return f"A log is in `{at}`: `{command}` takes it out"
    return None


def _quoted(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else f'"{name}"'


def _made(record: Record, path: _Path, *, is_with: bool) -> Iterator[Record]:
    """Yield the records that the command makes of one, with what stands beside them or not."""
    rest = without(fields_of(record.value), (path[0][0],)) if is_with else {}
    for item in _items(record.value, path):
        yield replace(record, value={**rest, **fields_of(item)})


def _items(value: object, path: _Path) -> list[Any]:
    items: list[Any] = [value]
    for name, is_each in path:
        found = [fields_of(item).get(name) for item in items]
        items = [inner for each in found for inner in items_of(each)] if is_each else found
    return items


def _paths(value: object, path: _Path, depth: int) -> Iterator[_Path]:
    """Yield paths to the objects in a value, the least deep first; `properties` is a schema."""
    below: list[tuple[object, _Path]] = []
    for name, item in fields_of(value).items() if depth else ():
        is_known = name == "properties" if path else name in (*PROMPTS, *ANSWERS)
        is_each = bool(items_of(item)) and not is_chat(item)
        inner = items_of(item)[0] if is_each else item
        if isinstance(inner, Mapping) and not is_known:
            below.append((inner, (*path, (name, is_each))))
    yield from (at for _, at in below)
    for item, at in below:
        yield from _paths(item, at, depth - 1)
