"""Which texts of a record are in no message that its reader made.

A text counts as read if a message has it: whole, as a line of a longer text, as a value of a
call's arguments, or cut into several. So readers need not say what they read.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from graphcredit.collector.importers.coverage.fields import Field, record_field, texts_within
from graphcredit.collector.importers.messages.rollout import LoggedRollout, PlainMessages
from graphcredit.collector.importers.messages.values import canonical, canonical_text, parse_json

_LONG = 40
"""Characters of a text that is in another one by no accident."""

_CUT, _WHOLE = 0.5, 0.9
"""Share of a text that must be in messages for it to be cut into them; the rest is markup. Short
words are in a short text by accident, unless they make up nearly all of it."""

_PLACE_OF_IMAGE = "<image>"

_TAG = re.compile(r"</?\w+>|<\|\w+\|>|```\w*|\n+")

_MOST_COMPARISONS = 10_000_000
"""Of texts of a record with texts that were read: about a second. Then its field decides."""

_END = "\0"
"""Stands between texts that are searched together."""


@dataclass(frozen=True, slots=True)
class Unread:
    """What of a record is in no message."""

    num_characters: int
    """Of all its texts that count."""
    texts: list[tuple[Field, str]]
    """Those that are in no message, with their places."""
    guessed: Counter[str]
    """Texts that were too many to look for, by path: most of those before in their field decide."""


def unread_of(record: object, place: Field, rollouts: Iterable[LoggedRollout]) -> Unread:
    """Return what of a record is in no message.

    Args:
        record: The record.
        place: Its place, which knows what is left out on purpose.
        rollouts: What its reader made of it.
    """
    rollouts = list(rollouts)
    rest, num_plain = _without_plain(record, place, rollouts)
    texts = texts_within(rest, place)
    if num_plain and _names_of(rollouts).issuperset([text for _, text in texts]):
        return Unread(num_plain + sum(len(text) for _, text in texts), [], Counter())
    read = _read_texts(rollouts)
    texts = texts_within(record, place) if num_plain else texts
    left = [item for item in texts if item[1] not in read]
    left = [item for item in left if canonical_text(item[1]) not in read]
    guessed: Counter[str] = Counter()
    if left:
        made = read - {text for _, text in texts}
        left = list(_searched(left, read, made, guessed))
    return Unread(sum(len(text) for _, text in texts), left, guessed)


def _without_plain(
    record: object, place: Field, rollouts: Sequence[LoggedRollout]
) -> tuple[object, int]:
    """Return a record without its list of plain messages that were read whole, and their length."""
    messages = rollouts[0].messages if len(rollouts) == 1 else ()
    if type(record) is not dict or type(messages) is not PlainMessages:
        return record, 0
    fields = cast("dict[str, Any]", record)
    for name in (name for name in fields if fields[name] is messages.items):
        within = place[name]["*"]
        inner = (place[name], within, *(within[each] for each in _OF_PLAIN))
        if not any(each.characters for each in inner):
            return {k: v for k, v in fields.items() if k != name}, messages.num_characters
    return record, 0


_OF_PLAIN = ("content", "reasoning_content", "tool_calls")


def _names_of(rollouts: Iterable[LoggedRollout]) -> set[str | None]:
    return {
        name
        for rollout in rollouts
        for name in (rollout.group, rollout.task, rollout.label, rollout.run, rollout.trajectory_id)
    }


def _read_texts(rollouts: Iterable[LoggedRollout]) -> set[str]:
    """Return the texts of the messages of rollouts, and their names."""
    read = _names_of(rollouts)
    for rollout in rollouts:
        for message in rollout.messages:
            own = (message.text, message.thought, message.action, message.state, message.calls_text)
            read.update(text for text in own if isinstance(text, str))
            for call in message.tool_calls:
                read.add(call.name)
                read.add(call.arguments)
            if message.admissible_actions:
                read.update(message.admissible_actions)
            for part in message.image_parts:
                read.update(text for _, text in texts_within(part, record_field()))
    return cast("set[str]", read - {None, ""})


@dataclass(frozen=True, slots=True)
class _Read:
    """Texts that were read."""

    whole: Collection[str]
    """Each, and the lines of those that readers made."""
    made: Collection[str]
    """Those that no field has, since readers made them: whole texts, and values of arguments."""
    together: str
    """All of them in one."""


def _searched(
    texts: list[tuple[Field, str]], read: set[str], made: set[str], guessed: Counter[str]
) -> Iterator[tuple[Field, str]]:
    """Yield the texts that are in no message, also not as a part; count those that are guessed."""
    made = made | set(_inner_texts(read))
    lines = {line.strip() for text in made for line in text.splitlines()}
    known = _Read(whole=read | made | lines, made=made, together=_END.join(read | made))
    is_read: dict[str, bool] = {}  # a session may have one text thousands of times
    fields: dict[str, list[bool]] = {}
    most = _MOST_COMPARISONS // max(len(known.whole), 1)
    for field, text in texts:
        text = text.replace(_PLACE_OF_IMAGE, "").strip()
        before = fields.setdefault(field.path, [])
        if text not in is_read and (not text or text in known.whole):
            is_read[text] = True
        elif text not in is_read and (most > 0 or not before):
            most -= 1
            is_read[text] = _is_read(text, known)
            before.append(is_read[text])
        elif text not in is_read:
            guessed[field.path] += 1
            is_read[text] = 2 * sum(before) > len(before)
        if not is_read[text]:
            yield field, text


def _is_read(text: str, read: _Read) -> bool:
    is_long = len(text) > _LONG
    return (
        _is_json_of(text, read.whole)
        or _is_cut(text, read.whole, _CUT if is_long else _WHOLE)
        or _is_cut(text, read.made, _CUT)
        or (is_long and text in read.together)
    )


def _inner_texts(texts: Iterable[str]) -> Iterator[str]:
    """Yield the texts within those texts that are JSON, such as arguments of calls."""
    for text in texts:
        if text[:1] in ("{", "["):
            yield from _texts_of_json(parse_json(text))


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
    return [text.strip() for _, text in texts_within(value, record_field())]
