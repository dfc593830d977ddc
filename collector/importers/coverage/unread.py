"""Which texts of a record are in no message that its reader made.

A text counts as read if a message has it: whole, as a line of a longer text, as a value of a
call's arguments, or cut into several. So readers need not say what they read.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import cast

from graphcredit.collector.importers.coverage.fields import (
    Field,
    record_field,
    texts_within,
)
from graphcredit.collector.importers.messages.rollout import LoggedRollout
from graphcredit.collector.importers.messages.values import (
    canonical,
    canonical_text,
    parse_json,
)

_LONG = 40
"""Characters of a text that is in another one by no accident."""

_CUT, _WHOLE = 0.5, 0.9
"""Share of a text that must be in messages for it to be cut into them; the rest is markup. Short
words are in a short text by accident, unless they make up nearly all of it."""

_PLACE_OF_IMAGE = "<image>"

_TAG = re.compile(r"</?\w+>|<\|\w+\|>|```\w*|\n+")

_MOST_COMPARISONS = 10_000_000
"""Of texts of a record with texts that were read; then most of those of its field decide."""


def unread_texts(
    record: object, place: Field, rollouts: Iterable[LoggedRollout]
) -> tuple[int, list[tuple[Field, str]]]:
    """Return the characters of the texts of a record, and those texts that are in no message.

    Args:
        record: The record.
        place: Its place, which knows what is left out on purpose.
        rollouts: What its reader made of it.
    """
    read = _read_texts(rollouts)
    num_characters, left = texts_within(record, place, read)
    left = [item for item in left if canonical_text(item[1]) not in read]
    if left:
        made = read - {text for _, text in texts_within(record, place)[1]}
        left = list(_searched(left, read, made))
    return num_characters, left


def _read_texts(rollouts: Iterable[LoggedRollout]) -> set[str]:
    """Return the texts of the messages of rollouts, and their names."""
    read: set[str | None] = set()
    for rollout in rollouts:
        read |= {rollout.group, rollout.task, rollout.label, rollout.run, rollout.trajectory_id}
        for message in rollout.messages:
            read.add(message.text)
            if message.thought or message.action or message.state or message.calls_text:
                read |= {message.thought, message.action, message.state, message.calls_text}
            for call in message.tool_calls:
                read.add(call.name)
                read.add(call.arguments)
            if message.admissible_actions:
                read.update(message.admissible_actions)
            for part in message.image_parts:
                read.update(text for _, text in texts_within(part, record_field())[1])
    return cast("set[str]", read - {None, ""})


def _searched(
    texts: list[tuple[Field, str]], read: set[str], made: set[str]
) -> Iterator[tuple[Field, str]]:
    """Yield the texts that are in no message, also not as a part."""
    made = made | set(_inner_texts(read))
    lines = {line.strip() for text in made for line in text.splitlines()}
    known = read | made | lines
    is_read: dict[str, bool] = {}  # a session may have one text thousands of times
    fields: dict[str, list[bool]] = {}
    most = _MOST_COMPARISONS // len(known) if known else 0
    for field, text in texts:
        text = text.replace(_PLACE_OF_IMAGE, "").strip()
        if text not in is_read:
            as_before = fields.setdefault(field.path, [])
            if len(is_read) <= most or not as_before:
                as_before.append(not text or _is_read(text, known, made))
                is_read[text] = as_before[-1]
            else:
                is_read[text] = text in known or 2 * sum(as_before) > len(as_before)
        if not is_read[text]:
            yield field, text


def _is_read(text: str, known: Collection[str], made: Collection[str]) -> bool:
    is_long = len(text) > _LONG
    return (
        text in known
        or _is_json_of(text, known)
        or _is_cut(text, known, _CUT if is_long else _WHOLE)
        or _is_cut(text, made, _CUT)
        or (is_long and _is_copy(text, known))
    )


def _inner_texts(texts: Iterable[str]) -> Iterator[str]:
    """Yield the texts within those texts that are JSON, such as arguments of calls."""
    for text in texts:
        if text[:1] in ("{", "["):
            yield from _texts_of_json(parse_json(text))


def _is_copy(text: str, read: Collection[str]) -> bool:
    """Return whether a text is part of one that was read."""
    return any(len(each) > len(text) and text in each for each in read)


def _is_cut(text: str, read: Collection[str], share: float) -> bool:
    """Return whether texts that were read make up a share of a text, its tags not counted."""
    wanted, total = share * len(_TAG.sub("", text)), 0
    for each in read:
        if 0 < len(each) <= len(text) and each in text:
            total += len(each)
            if total >= wanted:
                return True
    return False


def _is_json_of(text: str, read: Collection[str]) -> bool:
    """Return whether a text is JSON that was read, such as the arguments of a call."""
    value = parse_json(text)
    if value is None:
        return False
    inner = _texts_of_json(value)
    if canonical(value) in read:
        return True
    return bool(inner) and all(each in read or _is_json_of(each, read) for each in inner)


def _texts_of_json(value: object) -> list[str]:
    return [text.strip() for _, text in texts_within(value, record_field())[1]]
