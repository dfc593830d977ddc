"""Inspect's logs: `.eval` archives and `.json` files, a sample for each task and epoch."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.logs.files import MAX_RECORD_BYTES, Record, RowError
from graphcredit.collector.importers.messages.chat import chat_messages
from graphcredit.collector.importers.messages.rollout import (
    ASSISTANT,
    LoggedRollout,
    LoggedSampling,
    Message,
    Omission,
    Rollouts,
    each_part,
    sampling_of,
)
from graphcredit.collector.importers.messages.values import (
    RecordError,
    as_list,
    as_mapping,
    as_text,
    field_at,
    fields_of,
    items_of,
)

_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_REFUSALS = ("parsing", "approval")
_ATTACHMENT = "attachment://"
_INFO = ("id", "epoch", "target", "scores", "metadata", "limit", "total_time")

_MESSAGES = ("messages.*", "message_pool.*", "output.choices.*.message")
_OF_SAMPLE = (
    *("events", "attachments", "scores", "metadata", "store", "target", "messages.*.error"),
    *(f"{each}.{name}" for each in _MESSAGES for name in ("source", "function")),
    *(f"{each}.tool_calls.*.view" for each in _MESSAGES),
)
ASIDE = (
    *("header", "eval", "plan", "results", "stats"),
    *(f"sample.{name}" for name in _OF_SAMPLE),
    *(f"samples.*.{name}" for name in _OF_SAMPLE),
)
"""What is no message. Attachments become texts where a message names them."""


def is_row(value: object, path: Path) -> bool:
    """Return whether a record is a sample of an archive, or a whole `.json` log."""
    names = fields_of(value).keys()
    return set(names) == {"header", "sample"} or {"version", "eval", "plan"} <= names


def read(record: Record) -> Rollouts:
    """Yield the rollouts of a record."""
    log = as_mapping(record.value, "a log")
    if "sample" in log:
        if isinstance(log["sample"], RowError):
            raise log["sample"]
        yield from _sample(as_mapping(log["sample"], "a sample"), fields_of(log["header"]))
        return
    samples = as_list(log.get("samples") or [], "samples")
    if not samples:
        yield Omission(reason="evaluation without samples")
    yield from each_part(samples, "samples", lambda sample: _sample(sample, log))


def _sample(sample: Mapping[str, Any], header: Mapping[str, Any]) -> Rollouts:
    for name, reason in (("error", "with an error"), ("invalidation", "that was invalidated")):
        if sample.get(name):
            yield Omission(reason=f"sample {reason}")
            return
    evaluation = fields_of(header.get("eval"))
    raw = sample.get("messages") or _last_conversation(sample)
    attachments = _Attachments(fields_of(sample.get("attachments")))
    messages = chat_messages(attachments.put_into(raw), "messages")
    rewards = _rewards(fields_of(sample.get("scores")))
    task = f"{evaluation.get('task', 'task')}:{as_text(sample.get('id'))}"
    sampling = sampling_of(evaluation.get("model_generate_config"))
    of_turns = _intermediate_scores(sample)
    info = {name: sample[name] for name in _INFO if sample.get(name) not in (None, {})}
    model = evaluation.get("model")
    yield LoggedRollout(
        messages=tuple(_message(m, sampling, of_turns) for m in messages),
        record=sample,
        label=f"{task}:{as_text(sample.get('epoch'))}",
        trajectory_id=as_text(sample.get("uuid")),
        task=task,
        reward=next(iter(rewards.values()), None),
        rewards=rewards,
        truncated=sample.get("limit") is not None,
        info=info if model is None else {**info, "model": model},
        notes=_notes(sample, rewards),
    )


def _notes(sample: Mapping[str, Any], rewards: Mapping[str, float]) -> tuple[str, ...]:
    several = (
        f"the reward is the score {next(iter(rewards), None)}, the first of {', '.join(rewards)}: "
        "--reward NAME and --success 'NAME>=1' take another"
    )
    of_call = "samples without messages have those of their last call of a model"
    return (*[several] * (len(rewards) > 1), *[of_call] * (not sample.get("messages")))


def _last_conversation(sample: Mapping[str, Any]) -> list[Any]:
    """Return what the last call of a model was given, and its answer.

    What it was given may be ranges of a pool that the sample's calls share.
    """
    pool = field_at(sample, "events_data.messages") or sample.get("message_pool") or []
    events = as_list(sample.get("events") or [], "events")
    for call in map(fields_of, reversed(events)):
        answer = field_at(call, "output.choices.0.message")
        if call.get("event") == "model" and answer is not None:
            refs = call.get("input_refs") or ()
            pooled = [message for first, end in refs for message in pool[first:end]]
            return [*pooled, *as_list(call.get("input") or [], "input"), answer]
    return []


def _intermediate_scores(sample: Mapping[str, Any]) -> dict[str, float]:
    """Return the scores that were given on the way, by the id of the answer before."""
    scores: dict[str, float] = {}
    answer: str | None = None
    for event in map(fields_of, as_list(sample.get("events") or [], "events")):
        if event.get("event") == "model":
            answer = field_at(event, "output.choices.0.message.id")
        elif event.get("event") == "score" and event.get("intermediate") and answer is not None:
            number = _number(field_at(event, "score.value"))
            if number is not None:
                scores[answer] = scores.get(answer, 0.0) + number
    return scores


class _Attachments:
    """The texts of a sample that `attachment://` names."""

    def __init__(self, texts: Mapping[str, Any]) -> None:
        self._texts = texts
        self._left = MAX_RECORD_BYTES

    def put_into(self, value: Any) -> Any:
        """Return a value with the texts in the place of their names."""
        match value:
            case str() if value.startswith(_ATTACHMENT):
                text = self._texts.get(value.removeprefix(_ATTACHMENT), value)
                self._left -= len(text) if isinstance(text, str) else 0
                if self._left < 0:
                    raise RecordError(
                        f"the attachments of a sample must have at most {MAX_RECORD_BYTES:,} "
                        "characters, each as often as it is named: these have more"
                    )
                return text
            case list():
                return [self.put_into(item) for item in items_of(value)]
            case dict():
                return {key: self.put_into(item) for key, item in fields_of(value).items()}
            case _:
                return value


def _message(message: Message, sampling: LoggedSampling, of_turns: Mapping[str, float]) -> Message:
    if message.role == ASSISTANT:
        return replace(
            message,
            sampling=sampling,
            is_context=message.source.get("source") == "input",
            reward=of_turns.get(str(message.source.get("id"))),
            score=of_turns.get(str(message.source.get("id"))),
        )
    refusal = field_at(message.source, "error.type")
    # Inspect leaves the text of a failed tool empty, and tells the model of the error instead.
    error = field_at(message.source, "error.message")
    text = message.text or (f"Error: {error}" if error else "")
    return replace(message, text=text, is_refused=refusal in _REFUSALS)


def _rewards(scores: Mapping[str, Any]) -> dict[str, float]:
    """Return the scores by scorer; a score with several values has a name for each."""
    rewards: dict[str, float] = {}
    for scorer, score in scores.items():
        value = fields_of(score).get("value")
        named = {f"{scorer}.{k}": v for k, v in fields_of(value).items()} or {scorer: value}
        for name, one in named.items():
            number = _number(one)
            if number is not None:
                rewards[name] = number
    return rewards


def _number(value: object) -> float | None:
    """Return the number of a score: correct, incorrect, partial and no answer are letters."""
    number = _LETTERS.get(value) if isinstance(value, str) else value
    return float(number) if isinstance(number, int | float) and math.isfinite(number) else None
