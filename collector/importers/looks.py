"""What a file that is no log looks like, what it lacks, and what to try next."""

from collections.abc import Iterator, Mapping, Sequence
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
from graphcredit.collector.importers.messages.values import fields_of, short
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
    return f"the first record has {', '.join(fields[:_SHOWN])}{more}. {_advice(row, records[0])}"


def _kind(value: object) -> str:
    return _list(cast("list[object]", value)) if isinstance(value, list) else _KINDS[type(value)]


def _list(items: list[object]) -> str:
    if not items:
        return "empty list"
    kind = _KINDS[type(items[0])]
    return f"list of {kind if kind in ('text', 'null', 'true or false') else kind + 's'}"


def _advice(row: Mapping[str, Any], record: Record) -> str:
    """Return what the nearest format lacks, and what to try."""
    inner = next(_logs_within(row, "", record, _DEPTH), None)
    if inner is not None:
        return (
            f"A log may be in `{inner}`: `jq -c '{inner}' FILE > records.jsonl` takes it out. The "
            "reward and the task belong beside it"
        )
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
                "done): --columns trajectory=FIELD, or trajectory=path if each file is a trajectory"
            )
        missing = "state" if has_action else "action"
        return (
            f"It may be a step, and lacks its {missing}: --columns {missing}=FIELD names it; with "
            "commas also task=FIELD, reward=FIELD, and trajectory=FIELD, or trajectory=path if "
            "each file is a trajectory"
        )
    if not any(isinstance(item, str | list | dict) for item in row.values()):
        return (
            f"Numbers alone are no log of steps: name them with --columns, if they are. {_FORMATS}"
        )
    return (
        "It has no messages, no prompt with its answer, and no state with its action; fields of "
        "these with other names can be named: --columns messages=FIELD, or --columns "
        f"state=FIELD,action=FIELD,trajectory_id=FIELD,reward=FIELD. {_FORMATS}"
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


def _is_conversation(value: object) -> bool:
    first = fields_of(cast("list[object]", value)[0]) if is_chat(value) else {}
    return "role" in first or "from" in first


def _logs_within(value: object, path: str, record: Record, depth: int) -> Iterator[str]:
    """Yield paths of jq to what a format would read within a value, the least deep first."""
    if depth == 0 or not isinstance(value, Mapping):
        return
    below: list[tuple[object, str]] = []
    for name, item in cast("Mapping[str, object]", value).items():
        if not path and name in (*PROMPTS, *ANSWERS):
            continue
        at = f"{path}.{name}" if name.isidentifier() else f'{path}."{name}"'
        if isinstance(item, list) and item and not is_chat(cast("list[object]", item)):
            item, at = cast("list[object]", item)[0], f"{at}[]"
        below.append((item, at))
    for item, at in below:
        formats = candidates(item, record.path) if isinstance(item, Mapping) else []
        if _is_conversation(item) or any(each.name != "message-lines" for each in formats):
            yield at
    for item, at in below:
        yield from _logs_within(item, at, record, depth - 1)
