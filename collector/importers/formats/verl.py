"""Dumps of verl, `{step}.jsonl`, and of verl-agent, which shuffles its rows: one for each step.

A row of verl is a rollout, with the texts of prompt and answer. The prompt of verl-agent has the
number of the step and what the agent sees; rows are of one trajectory if they have one `traj_uid`,
which verl-agent knows, and writes where its trainer is told to.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.logs.files import Record, RowError
from graphcredit.collector.importers.logs.groups import RecordGroups
from graphcredit.collector.importers.messages.chat import answer
from graphcredit.collector.importers.messages.plain import split_thinking
from graphcredit.collector.importers.messages.rollout import (
    ASSISTANT,
    TOOL,
    USER,
    LoggedRollout,
    Message,
    Rollouts,
)
from graphcredit.collector.importers.messages.values import (
    RecordError,
    as_integer,
    as_mapping,
    as_number,
    as_objects,
    as_text,
    fields_of,
    numbers_of,
    without,
)

_WITHIN = re.compile(
    r"\s*user\n(?P<tool><tool_response>.*?</tool_response>)\s*assistant\n"
    r"|(?P<search><information>.*?</information>)",
    re.DOTALL,
)
"""What the environment said within an answer: results of tools in Qwen's template, whose special
tokens verl leaves out, or those of a search."""

_NOW = re.compile(
    r"current observation is[^:\n]*:\s*(?P<observation>.*?)\s*"
    r"\n\s*(?:Your|The) \w+ actions[^\[\n]*\n?\s*\[(?P<actions>.*?)\]\.?\s*(?:\n|$)",
    re.DOTALL,
)
_NUMBER = re.compile(r"already taken (\d+) step|has completed (\d+) step")
_QUESTION = re.compile(r"Your question: (?P<question>.*?)\n\n", re.DOTALL)
_RESULT = re.compile(r"<information>.*?</information>", re.DOTALL)
_ACTION = re.compile(r"<action>(.*?)</action>", re.DOTALL | re.IGNORECASE)
_CALL = re.compile(r"<search>.*?</search>|<answer>.*?</answer>", re.DOTALL)

AGENT_ASIDE = ("rows.*.input",)
"""Prompts, which have the steps before, and the words of a template around what is seen."""

NO_ID = (
    "rows of verl-agent must have a traj_uid: nothing else tells surely which rows are one "
    "rollout. Before its trainer calls _dump_generations, add "
    'reward_extra_infos_dict["traj_uid"] = list(batch.non_tensor_batch["traj_uid"])'
)


def is_verl(value: object, path: Path) -> bool:
    """Return whether a record is a row of verl."""
    row = fields_of(value)
    texts = row.get("input"), row.get("output")
    has_turns = isinstance(row.get("steps"), list)  # Agent-R1
    is_like = {"score", "step"} <= row.keys() and not has_turns
    return is_like and all(isinstance(text, str) for text in texts)


def read_verl(record: Record) -> Rollouts:
    """Yield the rollout of a row; the results of tools cut its answer into turns."""
    row = as_mapping(record.value, "a row")
    prompt = Message(role=USER, text=row["input"], source={"input": row["input"]})
    yield LoggedRollout(
        messages=(prompt, *_turns(row["output"])),
        record=row,
        label=f"step-{row['step']}",
        group=as_text(row.get("uid")),
        iteration=as_integer(row["step"]),
        reward=as_number(row["score"], "score"),
        rewards=numbers_of(without(row, ("step",))),
        info=without(row, ("input", "output")),
    )


def _turns(text: str) -> Iterator[Message]:
    start = 0
    for match in _WITHIN.finditer(text):
        spoken, result = text[start : match.start()], match["tool"] or match["search"]
        yield answer(spoken, {"output": spoken})
        yield Message(role=TOOL, text=result, source={"output": result})
        start = match.end()
    if text[start:].strip() or not start:
        yield answer(text[start:], {"output": text[start:]})


@dataclass(frozen=True, kw_only=True, slots=True)
class _Step:
    """What a row says of its step."""

    observation: str
    accepted: tuple[str, ...] | None
    """The actions that the environment accepts."""
    action: str | None
    """None if the answer has none."""


def is_agent(value: object, path: Path) -> bool:
    """Return whether a record is a row of a step, with a prompt of verl-agent."""
    return is_verl(value, path) and _step_of(fields_of(value)) is not None


def gather_agent(records: Iterator[Record], limit: int) -> Iterator[Record]:
    """Yield a record for each trajectory of a file: its rows in order."""
    groups = RecordGroups(limit)
    for record in records:
        if is_agent(record.value, record.path):
            groups.add(as_text(record.value.get("traj_uid")), record)
        else:
            yield record

    def made(name: object, of_one: list[Record]) -> Iterator[Record]:
        rows = sorted((record.value for record in of_one), key=_number)
        value = RowError(NO_ID) if name is None else {"rows": rows}
        yield replace(of_one[0], place="", value=value, share=1.0)

    yield from groups.made(made)


def read_agent(record: Record) -> Rollouts:
    """Yield the rollout of the rows of a trajectory; its reward is that of the last row."""
    rows = as_objects(fields_of(record.value).get("rows"), "rows", "a row")
    if not rows:
        raise RecordError(NO_ID)
    last = rows[-1]
    yield LoggedRollout(
        messages=tuple(_messages(rows)),
        record=record.value,
        label=f"step-{last['step']}",
        group=as_text(last.get("uid")),
        iteration=as_integer(last["step"]),
        reward=as_number(last["score"], "score"),
        rewards={"score": float(last["score"])},
        info=without(last, ("input", "output")),
        notes=("verl-agent gives each row the reward of its episode: it is that of the last row",),
    )


def _messages(rows: list[Mapping[str, Any]]) -> Iterator[Message]:
    is_refused = False
    for row in rows:
        step = _step_of(row)
        if step is None:
            raise RecordError("each row of a rollout must have a prompt of verl-agent as input")
        yield Message(
            role=USER,
            text=step.observation,
            is_refused=is_refused,
            admissible_actions=step.accepted,
            source={"input": row["input"]},
        )
        thought, spoken = split_thinking(row["output"])
        yield Message(
            role=ASSISTANT,
            text=spoken if step.action is None else "",
            thought=thought,
            action=step.action,
            said=row["output"],
            source={"output": row["output"]},
        )
        is_refused = step.action is None


def _step_of(row: Mapping[str, Any]) -> _Step | None:
    """Return what a row says; None if its prompt is not of verl-agent."""
    prompt: str = row["input"]
    if not isinstance(row["score"], int | float):
        return None
    now, question = _NOW.search(prompt), _QUESTION.search(prompt)
    if now is not None:
        actions = re.split(r"[\s,]*\n[\s,]*|,\s*(?=['\"])", now["actions"].strip())
        accepted = tuple(action.strip(" '\",") for action in actions)
        return _Step(observation=now["observation"], accepted=accepted, action=_action(row))
    if question is not None and "<search>" in prompt:
        # It sees the question, then the result of its last search.
        history = prompt[question.end() :].partition("History:")[2]
        results = _RESULT.findall(history.partition("\n\nNow it's your turn")[0])
        seen = results[-1] if results else question["question"] if not _number(row) else ""
        return _Step(observation=seen, accepted=None, action=_action(row))
    return None


def _number(row: Mapping[str, Any]) -> int:
    """Return how many steps were before that of a row."""
    match = _NUMBER.search(row["input"])
    return int(match[1] or match[2]) if match is not None else 0


def _action(row: Mapping[str, Any]) -> str | None:
    match = _ACTION.search(row["output"])
    call = _CALL.search(row["output"]) if match is None else None
    return match[1].strip() if match else call[0] if call else None
