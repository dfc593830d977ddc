"""verl-agent's dumps of rollouts: shuffled rows of steps, whose `traj_uid` names the trajectory."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.formats.text_dumps import is_verl
from graphcredit.collector.importers.logs.files import Record, RowError
from graphcredit.collector.importers.logs.groups import RecordGroups, TooLargeError
from graphcredit.collector.importers.messages.answer_fields import split_thinking
from graphcredit.collector.importers.messages.rollout import (
    ASSISTANT,
    USER,
    LoggedRollout,
    Message,
    Rollouts,
)
from graphcredit.collector.importers.messages.values import (
    as_integer,
    as_number,
    as_text,
    fields_of,
    without,
)

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

_NO_TRAJECTORY = (
    "rows of verl-agent must have a traj_uid: each is one step, and nothing else tells which are "
    "one trajectory. Before its trainer dumps a batch: "
    'reward_extra_infos_dict["traj_uid"] = batch.non_tensor_batch["traj_uid"].tolist()'
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Step:
    """What a row says."""

    number: int
    """Of the step in its trajectory, from 0."""
    observation: str
    admissible_actions: tuple[str, ...] | None
    action: str | None
    """None if the answer has none."""
    source: Mapping[str, Any]


def is_row(value: object, path: Path) -> bool:
    """Return whether a record is a row of a step, with a prompt of verl-agent."""
    return is_verl(value, path) and _step(fields_of(value)) is not None


def gather(records: Iterator[Record], limit: int) -> Iterator[Record]:
    """Yield a record `{"rows": [...]}` for each trajectory of a file."""
    groups, is_refused = RecordGroups(limit), False
    for record in records:
        row = fields_of(record.value)
        if not is_row(row, record.path):
            yield record
        elif row.get("traj_uid") is not None:
            groups.add(as_text(row["traj_uid"]), record)
        elif not is_refused:
            is_refused = True
            yield replace(record, place="", value=RowError(_NO_TRAJECTORY))
    yield from groups.refused
    for name in groups:
        try:
            rows = groups.of(name)
        except TooLargeError as error:
            yield error.record()
        else:
            value = {"rows": [record.value for record in rows]}
            yield replace(rows[0], place="", value=value, share=1.0)


def read(record: Record) -> Rollouts:
    """Yield the rollout of a trajectory; its reward is that of the last row."""
    steps = [step for row in record.value["rows"] if (step := _step(row)) is not None]
    steps.sort(key=lambda step: step.number)
    last = steps[-1].source
    yield LoggedRollout(
        messages=tuple(_messages(steps)),
        record=record.value,
        label=f"step-{last['step']}",
        group=as_text(last.get("uid")),
        iteration=as_integer(last["step"]),
        reward=as_number(last["score"], "score"),
        rewards={"score": float(last["score"])},
        info=without(last, ("input", "output")),
        notes=("verl-agent gives each row the reward of its episode: it is that of the last row",),
    )


def _messages(steps: list[_Step]) -> Iterator[Message]:
    is_refused = False
    for step in steps:
        yield Message(
            role=USER,
            text=step.observation,
            is_refused=is_refused,
            admissible_actions=step.admissible_actions,
            source={"input": step.source["input"]},
        )
        answer = step.source["output"]
        thought, spoken = split_thinking(answer)
        yield Message(
            role=ASSISTANT,
            text=spoken if step.action is None else "",
            thought=thought,
            action=step.action,
            source={"output": answer},
        )
        is_refused = step.action is None


def _step(row: Mapping[str, Any]) -> _Step | None:
    """Return what a row says; None if its prompt is not of verl-agent."""
    prompt, answer = row["input"], row["output"]
    now, question = _NOW.search(prompt), _QUESTION.search(prompt)
    actions: tuple[str, ...] | None = None
    if now is not None:
        observation = now["observation"]
        names = re.split(r"[\s,]*\n[\s,]*|,\s*(?=['\"])", now["actions"].strip())
        actions = tuple(name.strip(" '\",") for name in names)
    elif question is not None and "<search>" in prompt:  # it sees the result of its last search
        results = _RESULT.findall(prompt.partition("History:")[2])
        observation = results[-1] if results else question["question"]
    else:
        return None
    action, call = _ACTION.search(answer), _CALL.search(answer)
    number = _NUMBER.search(prompt)
    return _Step(
        number=int(number[1] or number[2]) if number is not None else 0,
        observation=observation,
        admissible_actions=actions,
        action=action[1].strip() if action else call[0] if call else None,
        source=row,
    )
