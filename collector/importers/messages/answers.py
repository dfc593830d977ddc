"""Messages of one answer of the model become one message."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from graphcredit.collector.importers.messages.roles import ROLES, is_call_role
from graphcredit.collector.importers.messages.rollout import ASSISTANT, TOOL, Message, are_plain
from graphcredit.collector.importers.messages.shapes import is_call, is_thought
from graphcredit.collector.importers.messages.values import as_text


def joined_answer(first: Message, *others: Message) -> Message:
    """Return the messages of one answer as one: texts, reasoning, calls and images in order."""
    if not others:
        return first
    messages = (first, *others)
    return replace(
        first,
        text="\n\n".join(message.text for message in messages if message.text),
        thought="\n\n".join(message.thought for message in messages if message.thought),
        tool_calls=tuple(call for message in messages for call in message.tool_calls),
        calls_text="\n".join(message.calls_text for message in messages if message.calls_text),
        said="\n\n".join(filter(None, (m.said or m.text for m in messages)))
        if any(message.said for message in messages)
        else "",
        image_parts=tuple(part for message in messages for part in message.image_parts),
        num_unread=sum(message.num_unread for message in messages),
    )


def joined_answers(messages: Sequence[Message]) -> list[Message]:
    """Return messages in which those of one answer are one.

    Two messages of the policy with nothing but results between them are one answer if

    - both have ids, and these are equal: behind results, unless all answers have that id, which
      names the speaker then; or
    - nothing is between them, an id is missing, and one of them is no whole message but a call or
      reasoning alone, and they follow each other as an answer goes on: reasoning, text, calls
      (`_goes_on`); or
    - nothing is between them, an id is missing, and the second calls tools before the results of
      the calls of the first are there (`_are_parallel`).

    Context and what the policy sampled are never one.
    """
    roles = [message.role for message in messages]
    if are_plain(messages) and (ASSISTANT, ASSISTANT) not in pairwise(roles):
        return list(messages)
    ids = {_id_of(message) for message in messages if message.role == ASSISTANT}
    name = next(iter(ids)) if len(ids) == 1 else None
    results = {as_text(each.source.get("tool_call_id")) for each in messages if each.role == TOOL}
    joined: list[Message] = []
    last = -1  # where the answer is that may go on
    for message in messages:
        if message.role == ASSISTANT:
            if last >= 0 and joined[last].is_context == message.is_context:
                answer, is_next = joined[last], last == len(joined) - 1
                if None not in (both := (_id_of(answer), _id_of(message))):
                    is_apart = tokens_of(answer) is not None or not (is_next or name not in both)
                    is_one = both[0] == both[1] and not is_apart
                else:
                    is_one = is_next and (
                        _goes_on(answer, message) or _are_parallel(answer, message, results)
                    )
                if is_one:
                    joined[last] = _with(answer, message)
                    continue
            last = len(joined)
        elif message.role != TOOL:
            last = -1
        joined.append(message)
    return joined


def _goes_on(answer: Message, message: Message) -> bool:
    """Return whether a message, or the answer before it, is a part, and comes at its turn."""
    stages, further = _stages(answer), _stages(message)
    num_parts = _is_part(answer) + _is_part(message)
    if tokens_of(answer) is not None or not further or not num_parts:
        return False
    # A message without a word begins the answer of the call that follows it.
    return (
        not stages
        or stages[-1] < further[0]
        or (stages[-1] == further[0] != _SPOKEN and num_parts > 1)
    )


def _are_parallel(answer: Message, message: Message, results: Container[str | None]) -> bool:
    """Return whether a message calls what the calls before it, which have results, leave open."""
    are_judged = any(_OF_ONE & each.keys() for each in (answer.source, message.source))
    if are_judged or tokens_of(message) is not None:
        return False
    is_said_before = answer.tool_calls or (answer.text and not message.text)
    is_called = bool(message.tool_calls) and _has_results(message, results)
    return bool(is_said_before) and is_called and _has_results(answer, results)


def _has_results(message: Message, results: Container[str | None]) -> bool:
    return all(call.id is not None and call.id in results for call in message.tool_calls)


_OF_ONE = {"reward", "score", "weight", "loss"}
"""Fields that judge a message as one answer."""

_SPOKEN = 1


def _stages(message: Message) -> list[int]:
    """Return which stages of an answer a message has: 0 reasoning, 1 text, 2 calls."""
    parts = (message.thought, message.text, message.tool_calls)
    return [stage for stage, part in enumerate(parts) if part] or [0] * _is_part(message)


def sources_of(message: Message) -> list[Mapping[str, Any]]:
    """Return the objects of the log that a message is made of."""
    return message.source.get("items") or [message.source]


def tokens_of(message: Message) -> Mapping[str, Any] | None:
    """Return the object of a message that has its tokens, as NeMo writes them."""
    return next((item for item in sources_of(message) if item.get("generation_token_ids")), None)


def _id_of(message: Message) -> str | None:
    """Return the id of an answer; parts of an answer have ids of their own."""
    if message.source.keys().isdisjoint(("id", "items")):
        return None
    ids = (item.get("id") for item in sources_of(message) if "role" in item)
    return next((each for each in ids if isinstance(each, str)), None)


def _is_part(message: Message) -> bool:
    """Return whether the end of a message is a call or reasoning alone, and no whole message."""
    last = sources_of(message)[-1]
    role = last.get("role")
    is_whole = isinstance(role, str) and role in ROLES
    return is_call_role(last) or (not is_whole and (is_call(last) or is_thought(last)))


def _with(answer: Message, message: Message) -> Message:
    """Return an answer with what a further message of it says."""
    known = {(call.id, str(call)) for call in answer.tool_calls if call.id}
    calls = tuple(call for call in message.tool_calls if (call.id, str(call)) not in known)
    items = [*sources_of(answer), message.source]
    if answer.text and message.text.startswith(answer.text):  # it was logged while it grew
        answer = replace(answer, text="")
    joined = joined_answer(answer, replace(message, tool_calls=calls))
    return replace(joined, source={"items": [dict(item) for item in items]})
