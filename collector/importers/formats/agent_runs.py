"""Runs of agents that log their own objects: smolagents, browser-use.

Each is translated to a row with messages, which `chat_rows` reads.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.formats import chat_rows
from graphcredit.collector.importers.logs.files import Record, stem_of
from graphcredit.collector.importers.logs.groups import as_one
from graphcredit.collector.importers.messages.rollout import LoggedRollout, Rollouts, words_of
from graphcredit.collector.importers.messages.values import (
    as_mapping,
    as_objects,
    field_at,
    fields_of,
    first_at,
    items_of,
    without,
)

Raw = dict[str, Any]

_ELEMENT = ("node_name", "tag_name", "ax_name", "x_path", "xpath")
"""What names an element of a page in all sessions."""

_OPENING = "Initial Actions"
"""The title of a step that the program took, and not the model."""

_ADDRESS = r"\b(?:localhost|\d+(?:\.\d+){3})(?::\d+)?"
_SESSION = re.compile(
    rf"{_ADDRESS}|\*?\[\d+\](?=<)|(?<=\bTab )[0-9A-F]{{4}}\b|(?<=^Current tab: )[0-9A-F]{{4}}$",
    re.MULTILINE,
)
"""What another session has otherwise on the same page: where one of several workers served it, the
numbers of elements, and the names of tabs. It is part of no state, and an address of no task."""

_STATE = "page"
"""The field of a message that has the state."""

SMOLAGENTS_ASIDE = (
    *("state", "output"),
    *(f"steps.*.{name}" for name in ("model_input_messages", "model_output_message")),
    *(f"steps.*.{name}" for name in ("code_action", "action_output", "tool_calls.*.type")),
    "steps.*.error.type",
)
"""Copies of what the steps have."""


BROWSER_USE_ASIDE = (
    *("history.*.state.screenshot", "history.*.state.screenshot_path"),
    *("history.*.state.interacted_element", "history.*.metadata", "history.*.state_message"),
)
"""Screenshots, which are no part of a state, what an action turned out to be about, and what the
model was given, of which the page is read and the rest is a copy."""


def is_smolagents(value: object, path: Path) -> bool:
    """Return whether a record is a step of smolagents, or has a list of them."""
    steps = value if isinstance(value, list) else fields_of(value).get("steps")
    items = items_of(steps) if isinstance(steps, list) else [value]
    return any(
        {"step_number", "model_output", "observations"} <= fields_of(i).keys() for i in items
    )


def gather_smolagents(records: Iterator[Record], limit: int) -> Iterator[Record]:
    """Put together the steps of a file that is a list of them."""
    whole = (
        replace(record, value={"steps": record.value}) if isinstance(record.value, list) else record
        for record in records
    )
    return as_one(whole, limit, lambda v: isinstance(v, Mapping) and "steps" not in v, "steps")


def read_smolagents(record: Record) -> Rollouts:
    """Yield the rollout of a run."""
    run = as_mapping(record.value, "a run")
    messages: list[Raw] = []
    for step in as_objects(run.get("steps"), "steps", "a step"):
        messages += _smolagents_messages(step, is_first=not messages)
    row = {**without(run, ("steps",)), "messages": messages}
    yield from chat_rows.read(replace(record, value=row))


def _smolagents_messages(step: Mapping[str, Any], *, is_first: bool) -> Iterator[Raw]:
    for name, role in (("system_prompt", "system"), ("task", "user"), ("plan", "assistant")):
        if step.get(name) is not None:
            yield {"role": role, "content": step[name]}
    if "step_number" not in step:
        return
    answer = fields_of(step.get("model_output_message"))  # it alone has calls that failed
    calls = step.get("tool_calls") or answer.get("tool_calls") or None
    yield {"role": "assistant", "content": step.get("model_output"), "tool_calls": calls}
    failure = fields_of(step.get("error")).get("message") or step.get("error")
    for text in (step.get("observations"), failure):
        if text is not None:
            yield {"role": "tool", "content": text}


def is_browser_use(value: object, path: Path) -> bool:
    """Return whether a record is a history of browser-use."""
    first = field_at(value, "history.0")
    return {"model_output", "result", "state"} <= fields_of(first).keys()


def read_browser_use(record: Record) -> Rollouts:
    """Yield the rollout of a history: the page, the actions on it, and what they brought."""
    run = as_mapping(record.value, "a history")
    history = as_objects(run["history"], "history", "a step")
    messages = [message for step in history for message in _browser_messages(step)]
    ends = as_objects(history[-1].get("result"), "result", "a result")
    success = first_at(ends[-1:], ("0.judgement.verdict", "0.success"))
    request = next(filter(None, (_given(step, "user_request") for step in history)), "")
    if request:
        messages.insert(0, {"role": "user", "content": request})
    task = run.get("task") or (
        words_of(_SESSION.sub("", request)) if request else _named(record.path)
    )
    named = {"success": success, "task_id": task}
    row = {**named, **without(run, ("history",)), "messages": messages}
    for item in chat_rows.read(replace(record, value=row)):
        if isinstance(item, LoggedRollout):
            shown = (replace(m, state=m.source.get(_STATE)) for m in item.messages)
            item = replace(item, messages=tuple(shown), is_claim=item.success is not None)
        yield item


def _given(step: Mapping[str, Any], tag: str) -> str:
    """Return a part of what the model was given; empty where a history does not keep it."""
    message = step.get("state_message")
    _, start, rest = (message if isinstance(message, str) else "").partition(f"<{tag}>")
    return rest.partition(f"</{tag}>")[0].strip() if start else ""


def _named(path: Path) -> str:
    """Return the name of a history: its file's, or its folder's if all files are called alike."""
    stem = stem_of(path)
    return path.parent.name if stem.lower() in ("history", "agenthistory") else stem


def _browser_messages(step: Mapping[str, Any]) -> Iterator[Raw]:
    state, output = fields_of(step.get("state")), fields_of(step.get("model_output"))
    tabs = [tab.get("url") for tab in as_objects(state.get("tabs"), "tabs", "a tab")]
    page = [state.get("url"), state.get("title"), *(u for u in tabs if u != state.get("url"))]
    given = _given(step, "browser_state")
    seen = given or "\n".join(str(each) for each in page if each)
    yield {"role": "user", "content": seen, _STATE: _SESSION.sub("", given) or None}
    if output and state.get("title") != _OPENING:
        brain = {**output, **fields_of(output.get("current_state"))}
        thoughts = [v for k, v in brain.items() if k != "action" and isinstance(v, str) and v]
        thoughts += [each for each in items_of(output.get("plan_update")) if isinstance(each, str)]
        yield {
            "role": "assistant",
            "reasoning_content": "\n".join(thoughts),
            "tool_calls": list(_browser_calls(output, items_of(state.get("interacted_element")))),
            "logged_action": output.get("action"),
        }
    for result in as_objects(step.get("result"), "result", "a result"):
        texts = [result.get(n) for n in ("extracted_content", "long_term_memory", "error")]
        text = "\n".join(dict.fromkeys(str(text) for text in texts if text))
        yield {"role": "tool", "content": text}


def _browser_calls(output: Mapping[str, Any], elements: list[Any]) -> Iterator[Raw]:
    """Yield the actions of a step; the element of a page stands for its number in that session."""
    actions = as_objects(output.get("action"), "action", "an action")
    for action, element in zip_longest(actions, elements[: len(actions)]):
        shown = {name: v for name, v in fields_of(element).items() if name in _ELEMENT and v}
        for name, value in action.items():
            if isinstance(value, Mapping):
                number = ("index", "xpath") if shown else ()
                yield {"name": name, "arguments": {**without(fields_of(value), number), **shown}}
