"""Runs of agents that log their own objects: smolagents, browser-use.

Each is translated to a row with messages, which `chat_rows` reads.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.formats import chat_rows
from graphcredit.collector.importers.logs.files import Record, stem_of
from graphcredit.collector.importers.logs.groups import as_one
from graphcredit.collector.importers.messages.rollout import LoggedRollout, Rollouts
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

_CLAIMED = "success is what the agent says of itself: --success names a verdict of others"

SMOLAGENTS_ASIDE = (
    *("state", "output"),
    *(f"steps.*.{name}" for name in ("model_input_messages", "model_output_message")),
    *(f"steps.*.{name}" for name in ("code_action", "action_output", "tool_calls.*.type")),
    "steps.*.error.type",
)
"""Copies of what the steps have."""


BROWSER_USE_ASIDE = (
    *("history.*.state.screenshot", "history.*.state.screenshot_path"),
    *("history.*.state.interacted_element", "history.*.metadata"),
)
"""Screenshots, which are no part of a state, and what an action turned out to be about."""


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
    yield from _rollout(record, {**without(run, ("steps",)), "messages": messages})


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
    named = {"success": success, "task_id": run.get("task") or stem_of(record.path)}
    row = {**named, **without(run, ("history",)), "messages": messages}
    yield from _rollout(record, row, _CLAIMED)


def _browser_messages(step: Mapping[str, Any]) -> Iterator[Raw]:
    state, output = fields_of(step.get("state")), fields_of(step.get("model_output"))
    tabs = [tab.get("url") for tab in as_objects(state.get("tabs"), "tabs", "a tab")]
    page = [state.get("url"), state.get("title"), *(u for u in tabs if u != state.get("url"))]
    yield {"role": "user", "content": "\n".join(str(each) for each in page if each)}
    if output:
        brain = {**output, **fields_of(output.get("current_state"))}
        thoughts = [v for k, v in brain.items() if k != "action" and isinstance(v, str) and v]
        actions = as_objects(output.get("action"), "action", "an action")
        calls = [
            {"name": name, "arguments": without(fields_of(value), ())}
            for action in actions
            for name, value in action.items()
            if isinstance(value, Mapping)
        ]
        yield {"role": "assistant", "reasoning_content": "\n".join(thoughts), "tool_calls": calls}
    for result in as_objects(step.get("result"), "result", "a result"):
        texts = [result.get(n) for n in ("extracted_content", "long_term_memory", "error")]
        text = "\n".join(dict.fromkeys(str(text) for text in texts if text))
        yield {"role": "tool", "content": text}


def _rollout(record: Record, row: Mapping[str, Any], *notes: str) -> Rollouts:
    for item in chat_rows.read(replace(record, value=row)):
        if isinstance(item, LoggedRollout) and item.success is not None:
            item = replace(item, notes=(*item.notes, *notes))
        yield item
