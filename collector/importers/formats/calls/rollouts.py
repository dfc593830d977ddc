"""Calls of a model from what an API was given and answered, and rollouts of joined calls."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.formats import chat_rows
from graphcredit.collector.importers.formats.calls.chains import Chain, ModelCall, is_same
from graphcredit.collector.importers.formats.row_verdicts import REWARDS, as_score
from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.chat import chat_messages
from graphcredit.collector.importers.messages.exchanges import chat_in
from graphcredit.collector.importers.messages.rollout import (
    ASSISTANT,
    SYSTEM,
    LoggedRollout,
    Message,
    Omission,
)
from graphcredit.collector.importers.messages.values import NESTED, fields_of

_STUB = {"messages": [{"role": ASSISTANT, "content": ""}]}


def call_of(given: object, said: object, facts: Mapping[str, Any]) -> ModelCall:
    """Return a call of a model.

    Args:
        given: The request, or what else has the messages before the answer.
        said: The answer; null if it is the end of what was given.
        facts: What else the log says of the call.
    """
    prompt = chat_messages(chat_in(given, "user"), "the prompt")
    if isinstance(said, str) and prompt and prompt[-1].is_answer and not prompt[-1].tool_calls:
        said = None  # a text beside a whole conversation is no further answer
    answers = chat_messages(chat_in(said, ASSISTANT), "the answer")
    num_repeated = _num_repeated(prompt, answers)
    if num_repeated:
        kept = () if answers[0].role == SYSTEM else prompt[: _num_system(prompt)]
        prompt, answers = (*kept, *answers[:num_repeated]), answers[num_repeated:]
    elif answers and prompt and is_same(prompt[-1], answers[-1]):
        prompt = prompt[:-1]
    if not answers:
        num = sum(1 for _ in takewhile(lambda m: m.role == ASSISTANT, reversed(prompt)))
        prompt, answers = prompt[: len(prompt) - num], prompt[len(prompt) - num :]
    return ModelCall(prompt=prompt, answers=answers, facts=facts)


def _num_system(messages: Sequence[Message]) -> int:
    return sum(1 for _ in takewhile(lambda message: message.role == SYSTEM, messages))


def _num_repeated(prompt: Sequence[Message], answers: Sequence[Message]) -> int:
    """Return how many messages an answer begins with that are those of the prompt."""
    given = [message for message in prompt if message.role != SYSTEM]
    start = _num_system(answers)
    again = answers[start : start + len(given)]
    is_repeated = given and len(answers) > start + len(given) and all(map(is_same, again, given))
    return start + len(given) if is_repeated else 0


def rollout_of_chain(chain: Chain) -> LoggedRollout:
    """Return the rollout of a conversation: its messages, and what its calls say of it."""
    facts = _with_numbers(_merged(chain.facts))
    rollouts = chat_rows.read(Record(path=Path(), place="", value={**facts, **_STUB}, share=1.0))
    rollout = next(item for item in rollouts if not isinstance(item, Omission))
    messages = chain.with_context()
    return replace(
        rollout,
        messages=messages,
        record={**facts, "messages": [message.source for message in messages]},
        left_out={**rollout.left_out, **chain.left_out},
    )


def _merged(all_facts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what several calls say: of each field the last that is not null."""
    merged: dict[str, Any] = {}
    for facts in all_facts:
        for name, value in facts.items():
            if isinstance(value, Mapping):
                merged[name] = _merged([fields_of(merged.get(name)), fields_of(value)])
            elif value is not None:
                merged[name] = value
    return merged


def _with_numbers(facts: dict[str, Any]) -> dict[str, Any]:
    """Return facts with the reward as a number, and the task by a name that rows have.

    Metadata of an API are texts.
    """
    parts = (facts, *(fields_of(facts.get(name)) for name in (*NESTED, "request")))
    more: dict[str, Any] = {}
    if chat_rows.task_of(facts) is None:
        more["task_id"] = chat_rows.task_of(fields_of(facts.get("request")))
    rewards = [part[n] for part in parts for n in REWARDS if isinstance(part.get(n), str)]
    if rewards:
        more["reward"] = as_score(rewards[0])
    texts = set(REWARDS)
    cleaned = {
        name: {k: v for k, v in value.items() if not (k in texts and isinstance(v, str))}
        if name in NESTED and isinstance(value, Mapping)
        else value
        for name, value in facts.items()
        if not (name in texts and isinstance(value, str))
    }
    return {**cleaned, **more}
