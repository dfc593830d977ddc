"""verl-agent's dumps of rollouts: a row for each step, shuffled, without the trajectory's id.

The prompt of a row has the number of the step, the last steps before it, and what the agent sees.
By that the rows are joined to trajectories; see `verl_chains`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from graphcredit.collector.importers.formats.text_dumps import is_verl
from graphcredit.collector.importers.formats.verl_chains import PastStep, StepRow, joined_rows
from graphcredit.collector.importers.logs.files import Record, RowError
from graphcredit.collector.importers.logs.groups import RecordGroups
from graphcredit.collector.importers.messages.plain import split_thinking
from graphcredit.collector.importers.messages.rollout import (
    ASSISTANT,
    USER,
    LoggedRollout,
    Message,
    Omission,
    Rollouts,
)
from graphcredit.collector.importers.messages.values import (
    RecordError,
    as_integer,
    as_number,
    as_text,
    fields_of,
    short,
    without,
)

_NOW = re.compile(
    r"current observation is[^:\n]*:\s*(?P<observation>.*?)\s*"
    r"\n\s*(?:Your|The) \w+ actions[^\[\n]*\n?\s*\[(?P<actions>.*?)\]\.?\s*(?:\n|$)",
    re.DOTALL,
)
_NUMBER = re.compile(r"already taken (\d+) step|has completed (\d+) step")
_PAST = re.compile(
    r"\[Observation (?P<number>\d+): '(?P<observation>.*?)', "
    r"Action (?P=number): '(?P<action>.*?)'\](?=\n|$)",
    re.DOTALL,
)
_QUESTION = re.compile(r"Your question: (?P<question>.*?)\n\n", re.DOTALL)
_SEARCH = re.compile(
    r"(?P<action><search>.*?</search>)\s*(?P<result><information>.*?</information>)", re.DOTALL
)
_ACTION = re.compile(r"<action>(.*?)</action>", re.DOTALL | re.IGNORECASE)
_CALL = re.compile(r"<search>.*?</search>|<answer>.*?</answer>", re.DOTALL)

NO_HISTORY = (
    "prompts must have the steps before (env.history_length > 0), or rows a traj_uid: these have "
    "neither, so nobody can tell which rows are one trajectory"
)


def is_row(value: object, path: Path) -> bool:
    """Return whether a record is a row of a step, with a prompt of verl-agent."""
    return is_verl(value, path) and _parsed(fields_of(value)) is not None


def gather(records: Iterator[Record], limit: int) -> Iterator[Record]:
    """Yield a record for each trajectory of a file, then what was not joined.

    Rows of two trajectories, or of two tasks, are never joined, where the log names these.
    """
    groups, has_history = RecordGroups(limit), False
    for record in records:
        row = _parsed(record.value) if is_verl(record.value, record.path) else None
        if row is None:
            yield record
        else:
            has_history |= bool(row.past or row.trajectory)
            groups.add((row.trajectory, as_text(record.value.get("uid"))), record)
    first = next(iter(groups), None)

    def made(name: object, of_one: list[Record]) -> Iterator[Record]:
        values = _values(of_one) if has_history else [RowError(NO_HISTORY)] * (name == first)
        yield from (replace(of_one[0], place="", value=value, share=1.0) for value in values)

    yield from groups.made(made)


def _values(records: Sequence[Record]) -> Iterator[object]:
    """Yield the trajectories of rows, and what was left out."""
    rows = [row for record in records if (row := _parsed(record.value)) is not None]
    chains, left_out = joined_rows(rows)
    yield from chains
    yield from (Omission(reason=reason, count=count) for reason, count in left_out.items())


def read(record: Record) -> Rollouts:
    """Yield the rollout of joined rows; its reward is that of the last row."""
    if isinstance(record.value, Omission):
        yield record.value
        return
    if not isinstance(record.value, tuple):
        raise RecordError(
            "a row must have input (a prompt of verl-agent), output, a number as score, and step: "
            f"got {short(record.value)}"
        )
    rows = cast("tuple[StepRow, ...]", record.value)
    last = rows[-1].source
    yield LoggedRollout(
        messages=tuple(_messages(rows)),
        record={"rows": [row.source for row in rows]},
        label=f"step-{last['step']}",
        group=as_text(last.get("uid")),
        iteration=as_integer(last["step"]),
        reward=as_number(last["score"], "score"),
        rewards={"score": float(last["score"])},
        info=without(last, ("input", "output")),
        notes=("verl-agent gives each row the reward of its episode: it is that of the last row",),
    )


def _messages(rows: tuple[StepRow, ...]) -> Iterator[Message]:
    is_refused = False
    for row in rows:
        yield Message(
            role=USER,
            text=row.observation,
            is_refused=is_refused,
            admissible_actions=row.admissible_actions,
            source={"input": row.source["input"]},
        )
        answer = row.source["output"]
        thought, spoken = split_thinking(answer)
        yield Message(
            role=ASSISTANT,
            text=spoken if row.action is None else "",
            thought=thought,
            action=row.action,
            said=answer,
            source={"output": answer},
        )
        is_refused = row.action is None


def _parsed(row: Mapping[str, Any]) -> StepRow | None:
    """Return what the prompt of a row says; None if it is not of verl-agent."""
    prompt: str = row["input"]
    if not isinstance(row["score"], int | float):
        return None
    now, question = _NOW.search(prompt), _QUESTION.search(prompt)
    if now is not None:
        past = tuple(
            PastStep(number=int(m["number"]), observation=m["observation"], action=m["action"])
            for m in _PAST.finditer(prompt[: now.start()])
        )
        actions = tuple(re.split(r"[\s,]*\n[\s,]*|,\s*(?=['\"])", now["actions"].strip()))
        return _row(row, past, now["observation"], tuple(a.strip(" '\",") for a in actions))
    if question is not None and "<search>" in prompt:
        return _searching(row, question["question"], prompt[question.end() :])
    return None


def _searching(row: Mapping[str, Any], question: str, rest: str) -> StepRow | None:
    """Return a row of a search; it sees the question, then the result of its last search."""
    history = rest.partition("History:")[2].partition("\n\nNow it's your turn")[0]
    searches = list(_SEARCH.finditer(history))
    count = _count(row["input"])
    first = count - len(searches) + 1
    seen = [question if first == 1 else "", *(match["result"] for match in searches)]
    past = tuple(
        PastStep(number=first + index, observation=seen[index], action=match["action"])
        for index, match in enumerate(searches)
    )
    return _row(row, past, seen[-1], None)


def _count(prompt: str) -> int:
    match = _NUMBER.search(prompt)
    return int(match[1] or match[2]) if match is not None else 0


def _row(
    row: Mapping[str, Any],
    past: tuple[PastStep, ...],
    observation: str,
    admissible_actions: tuple[str, ...] | None,
) -> StepRow:
    answer = row["output"]
    match = _ACTION.search(answer)
    call = _CALL.search(answer) if match is None else None
    return StepRow(
        number=_count(row["input"]) + 1,
        past=past,
        observation=observation,
        admissible_actions=admissible_actions,
        action=match[1].strip() if match else call[0] if call else None,
        score=float(row["score"]),
        trajectory=as_text(row.get("traj_uid")),
        source=row,
    )
