"""Logs of steps as they are: states, actions and rewards, under names that environments have."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import cast

from graphcredit.collector.importers.formats.row_verdicts import REWARDS, success_of
from graphcredit.collector.importers.formats.step_columns import (
    FIELDS,
    columns_of_log,
    columns_of_store,
    is_of_store,
)
from graphcredit.collector.importers.formats.step_episodes import PART, is_end
from graphcredit.collector.importers.formats.step_order import (
    Aligned,
    Seen,
    aligned_steps,
    text_of_value,
)
from graphcredit.collector.importers.formats.step_shapes import (
    ENDS,
    NAMES,
    Row,
    fields_for,
    has_part,
    part,
    shape_of,
)
from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.rollout import (
    ASSISTANT,
    NO_SAMPLING,
    USER,
    LoggedRollout,
    LoggedSampling,
    Message,
    Rollouts,
    ToolCall,
    made,
)
from graphcredit.collector.importers.messages.values import (
    RecordError,
    as_integer,
    as_mapping,
    as_number,
    as_text,
    as_verdict,
    fields_of,
    first_of,
    joined,
    no_verdict,
    numbers_of,
    without,
)

_FIELDS = {name for names in NAMES.values() for name in names}
_STEP_FIELDS = _FIELDS - {*NAMES["task_id"], *NAMES["reward"]}
"""Those that say nothing of an episode as a whole."""
_SAMPLING = tuple(field.name for field in fields(LoggedSampling))

_GOES_ON = "rows of one name that go on after an end, or begin again, are a rollout each"
_UNENDED = "some episodes end with a row that is not done: a limit is taken to have ended them"
_REPEATED = (
    "some episodes have one reward other than 0 on all their steps, and their return is the sum. "
    "If each is the total of the episode, log it on the last step alone"
)
_EXPORTED = (
    "the rows are an export of a store: they are its steps again. `graphcredit credit` makes "
    "their credit anew, and files of images are in the store's folder images/"
)
_EACH = (
    "each step says whether it succeeded, and the last one is taken for the episode. If that is "
    "about the step alone, --success names another field or a threshold"
)


def is_row(value: object, path: Path) -> bool:
    """Return whether a record is a step, or an episode of steps."""
    try:
        return shape_of(value) is not None
    except RecordError:
        return True  # it says what is wrong with its arrays


def read(record: Record) -> Rollouts:
    """Yield the trajectory of an episode that `gather` put together."""
    episode = as_mapping(record.value, "an episode")
    if "steps" not in episode:
        raise RecordError(
            "a step must have an action and a state, under the usual names or as --columns names "
            f"them (--columns state=FIELD,action=FIELD): its fields are {', '.join(episode)}"
        )
    rows = cast("list[Row]", episode["steps"])
    said = without(episode, ("steps", "trajectory_id", PART))
    facts = {**without(rows[0], ()), **said}
    for row in rows[-2:]:  # the very last may have no more than an observation
        facts.update(without(row, ()))
    aligned = aligned_steps(rows, record.places, facts)
    rewards, total = _rewards(aligned, said, facts)
    success = success_of(facts)
    task = as_text(first_of(facts, fields_for(facts, "task_id")))
    name = first_of(facts, fields_for(facts, "trajectory_id"))
    has_ends = any(has_part(row, name) for row in rows for name in ENDS)
    is_open = has_ends and not any(map(is_end, rows[-2:]))
    is_export = all(map(is_of_store, rows))
    notes = (
        *aligned.notes,
        *([_UNENDED] if is_open else []),
        *([_GOES_ON] if episode.get(PART) and name is not None else []),
        *([_EACH] if _is_said_by_each(rows, success[0]) else []),
        *([_EXPORTED] if is_export else []),
        *([_REPEATED] if len(set(rewards)) == 1 < len(rewards) and rewards[0] else []),
    )
    has_order = part(rows[0], "step_index") is not None
    columns, broken = (columns_of_store(rows), {}) if is_export else columns_of_log(aligned.rows)
    yield LoggedRollout(
        messages=tuple(_messages(aligned, rewards)),
        record={**without(facts, _STEP_FIELDS), "steps": rows},
        trajectory_id=episode.get("trajectory_id"),
        label=joined(task, said.get("id") if name is None else name, episode.get(PART)),
        task=task,
        run=as_text(facts.get("run_id")),
        iteration=as_integer((facts if has_order else said).get("iteration")),
        reward=total,
        rewards=numbers_of(said) | numbers_of(without(rows[-1], _FIELDS)),
        success=as_verdict(success[1]),
        truncated=_is_truncated(rows) or (is_open and as_verdict(success[1]) is not True),
        left_out={**no_verdict(*success), **broken},
        info=said,
        notes=notes,
        is_steps=True,
        state_field=aligned.state_field,
        columns=columns,
    )


def _rewards(aligned: Aligned, said: Row, facts: Row) -> tuple[list[float], float | None]:
    """Return the reward of each step, and their sum; a total without them is at the last step."""
    logged = aligned.rewards
    are_logged = any(reward is not None for reward in logged)
    rewards = [reward or 0.0 for reward in logged]
    if any(rewards):
        return rewards, math.fsum(rewards)
    total = as_number(first_of(said if are_logged else facts, REWARDS), "the reward")
    if total is None:
        return rewards, 0.0 if are_logged else None
    return [*rewards[:-1], total], total


def _is_said_by_each(rows: Sequence[Row], name: str) -> bool:
    """Return whether each step has a verdict, and already the first one is good."""
    verdicts = [as_verdict(row.get(name)) for row in rows]
    return len(rows) > 1 and None not in verdicts and verdicts[0] is True


def _is_truncated(rows: Sequence[Row]) -> bool:
    said = [part(row, "truncated") for row in rows[-2:]]
    said += [fields_of(row.get("info")).get("TimeLimit.truncated") for row in rows[-2:]]
    is_cut = rows[-1].get("is_last") and rows[-1].get("is_terminal") is False  # as RLDS says it
    return bool(is_cut) or any(map(as_verdict, said))


def _messages(aligned: Aligned, rewards: Sequence[float]) -> Iterator[Message]:
    was_refused = False
    has_rewards = any(reward is not None for reward in aligned.rewards)
    for row, seen, reward in zip(aligned.rows, aligned.seen, rewards, strict=True):
        accepted = part(row, "admissible_actions")
        yield made(
            role=USER,
            text=seen.text,
            state=seen.state,
            is_refused=was_refused,
            admissible_actions=tuple(map(text_of_value, accepted)) if accepted else None,
            source={},
        )
        calls = _calls_of(row)
        action = None if calls else text_of_value(part(row, "action"))
        yield made(
            role=ASSISTANT,
            text=action or "",
            action=action,
            tool_calls=calls,
            thought=text_of_value(part(row, "thought")),
            reward=reward,
            score=_score(row) if has_rewards else None,
            sampling=_sampling(row),
            source=without(row, _FIELDS | FIELDS),
        )
        was_refused = as_verdict(part(row, "is_action_valid")) is False
    if aligned.final is not None or was_refused:
        final = aligned.final or Seen(state="", text="")
        yield Message(role=USER, text=final.text, state=final.state, is_refused=was_refused)


def _score(row: Row) -> float | None:
    """Return the score of the state after a step that has a reward beside it."""
    score = row.get("score")
    is_number = isinstance(score, int | float) and not isinstance(score, bool)
    return as_number(score, "score") if is_number else None


def _calls_of(row: Row) -> tuple[ToolCall, ...]:
    """Return the call of a row whose action is the name of a tool, with its arguments beside it."""
    name, arguments = part(row, "action"), part(row, "arguments")
    is_call = isinstance(name, str) and arguments is not None
    return (ToolCall(name, text_of_value(arguments), None, arguments),) if is_call else ()


def _sampling(row: Row) -> LoggedSampling:
    values = {name: row[name] for name in _SAMPLING if row.get(name) is not None}
    if "policy_version" in values:
        values["policy_version"] = as_text(values["policy_version"])
    return LoggedSampling(**values) if values else NO_SAMPLING
