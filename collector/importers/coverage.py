"""Coverage: which texts of the records became part of a step, and which no reader read.

A text counts as read if a message of a rollout has it: whole, as a line of a longer text, as a
value of a call's arguments, or cut into several. So readers need not say what they read.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import cast

from graphcredit.collector.importers.messages.rollout import LoggedRollout, Message
from graphcredit.collector.importers.messages.values import (
    canonical,
    canonical_text,
    parse_json,
)

_NAMES = frozenset(
    {
        *("speaker", "author", "sender", "server_name", "server_label"),
        *("role", "from", "type", "kind", "object", "model", "id", "ids", "uuid", "status"),
        *(
            "finish_reason",
            "stop_reason",
            "finishReason",
            "stopReason",
            "timestamp",
            "created",
            "created_at",
            "created_time",
        ),
        *("start_time", "end_time", "version", "mime_type", "mimeType", "media_type"),
        *(
            "createdAt",
            "updatedAt",
            "updated_at",
            "date",
            "model_name",
            "modelName",
            "modelVersion",
        ),
        *("model_version", "service_tier", "system_fingerprint", "done_reason", "tool_name"),
        *("provider", "gen_ai.system", "custom_llm_provider", "request_path", "url", "method"),
        *("status_code", "api_key", "valueType", "source", "requestor", "tool_choice"),
    }
)
"""Fields whose short texts identify or classify, and say nothing in a conversation."""

_DEFINITIONS = frozenset(
    {
        *("tools", "functions", "oai_tools", "tool_definitions", "tools_schema"),
        *("signature", "thoughtSignature", "thought_signature", "encrypted_content"),
    }
)
"""Fields that describe the tools that a policy may call, or that only a model's server can read."""

_NAME_ENDS = ("_id", "Id", "_ids", "_at", "Uuid", "_type", "_uid", "_kind", "provider_name")
_NAME_CHARACTERS = 200

_LONG = 40
"""Characters of a text that is in another one by no accident."""

_CUT, _WHOLE = 0.5, 0.9
"""Share of a text that must be in messages for it to be cut into them; the rest is markup. Short
words are in a short text by accident, unless they make up nearly all of it."""

_PLACE_OF_IMAGE = "<image>"

_TAG = re.compile(r"</?\w+>|<\|\w+\|>|```\w*|\n+")

_MOST_COMPARISONS = 10_000_000
"""Of texts of a record with texts that were read; then most of those of its field decide."""

_MOST_FIELDS = 300
_REST = "(further fields)"


@dataclass(slots=True)
class FieldCount:
    """How much of a field was not read."""

    num_records: int = 0
    num_characters: int = 0


@dataclass(kw_only=True, slots=True)
class Coverage:
    """The texts of some records."""

    num_records: int = 0
    num_characters: int = 0
    """Of all texts but names, and those that readers leave out on purpose."""
    num_unread: int = 0
    """Those of texts of several words that no reader read; a single word may be a label."""
    unread: dict[str, FieldCount] = field(default_factory=dict[str, FieldCount])
    """All that no reader read, by path, such as `messages.*.content`."""

    @property
    def unread_share(self) -> float:
        """The share of the characters that no reader read, 0 to 1; labels are not counted."""
        return self.num_unread / max(self.num_characters, 1)

    def add(self, value: object, rollouts: Iterable[LoggedRollout], aside: Collection[str]) -> None:
        """Count a record.

        Args:
            value: The record.
            rollouts: What its reader made of it.
            aside: Paths of fields that the reader leaves out on purpose.
        """
        texts = list(_texts(value, aside))
        self.num_records += 1
        self.num_characters += sum(len(text) for _, text in texts)
        fields: dict[str, int] = {}
        for path, text in _unread(texts, rollouts):
            fields[path] = fields.get(path, 0) + len(text)
            self.num_unread += len(text) if len(text.split(maxsplit=1)) > 1 else 0
        for path, number in fields.items():
            self._count(path, 1, number)

    def take(self, other: "Coverage") -> None:
        """Add what was counted elsewhere."""
        self.num_records += other.num_records
        self.num_characters += other.num_characters
        self.num_unread += other.num_unread
        for path, count in other.unread.items():
            self._count(path, count.num_records, count.num_characters)

    def _count(self, path: str, num_records: int, num_characters: int) -> None:
        if path not in self.unread and len(self.unread) >= _MOST_FIELDS:
            path = _REST
        count = self.unread.setdefault(path, FieldCount())
        count.num_records = min(count.num_records + num_records, self.num_records)
        count.num_characters += num_characters

    def sentences(self) -> list[str]:
        """Return what was not read, the longest first: each field, its records, and its share."""
        order = sorted(self.unread.items(), key=lambda item: -item[1].num_characters)
        return [
            f"`{path}`: {count.num_records:,} of {self.num_records:,} records, "
            f"{count.num_characters / max(self.num_characters, 1):.1%} of their text"
            for path, count in order
        ]


def _texts(value: object, aside: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the texts of a record and their paths, but names and what is left out on purpose."""
    rest: list[tuple[str, object]] = [("", value)]
    while rest:
        path, value = rest.pop()
        kind = type(value)
        if kind is str:
            text = cast("str", value)
            if text and not text.isspace():
                yield path, text
        elif kind is dict:
            for name, item in cast("dict[str, object]", value).items():
                if type(item) not in _TEXTUAL or name in _DEFINITIONS:
                    continue
                inner = f"{path}.{name}" if path else name
                if inner not in aside and not (_may_be_name(name) and _is_short(item)):
                    rest.append((inner, item))
        elif kind is list:
            inner = f"{path}.*" if path else "*"
            if inner not in aside:
                items = cast("list[object]", value)
                rest.extend((inner, item) for item in items if type(item) in _TEXTUAL)


_TEXTUAL = frozenset({str, dict, list})
"""Types of JSON that may have texts."""


@lru_cache(maxsize=1024)
def _may_be_name(name: str) -> bool:
    return name in _NAMES or name.endswith(_NAME_ENDS)


def _is_short(value: object) -> bool:
    """Return whether a value is a text, or texts, as short as names."""
    if isinstance(value, str):
        return len(value) <= _NAME_CHARACTERS
    return isinstance(value, list) and all(
        isinstance(text, str) and len(text) <= _NAME_CHARACTERS
        for text in cast("list[object]", value)
    )


def _unread(
    texts: list[tuple[str, str]], rollouts: Iterable[LoggedRollout]
) -> Iterator[tuple[str, str]]:
    """Yield the texts that are in no message; each test is made for what the one before left."""
    read = {text for rollout in rollouts for text in _read_texts(rollout)}
    left = [item for item in texts if item[1] not in read]
    left = [item for item in left if canonical_text(item[1]) not in read]
    if not left:
        return
    made = read - {text for _, text in texts}
    made |= set(_inner_texts(read))
    lines = {line.strip() for text in made for line in text.splitlines()}
    known = read | made | lines
    is_read: dict[str, bool] = {}  # a session may have one text thousands of times
    fields: dict[str, list[bool]] = {}
    most = _MOST_COMPARISONS // len(known) if known else 0
    for path, text in left:
        text = text.replace(_PLACE_OF_IMAGE, "").strip()
        if text not in is_read:
            as_before = fields.setdefault(path, [])
            if len(is_read) <= most or not as_before:
                as_before.append(not text or _is_read(text, known, made))
                is_read[text] = as_before[-1]
            else:
                is_read[text] = text in known or 2 * sum(as_before) > len(as_before)
        if not is_read[text]:
            yield path, text


def _is_read(text: str, known: Collection[str], made: Collection[str]) -> bool:
    is_long = len(text) > _LONG
    return (
        text in known
        or _is_json_of(text, known)
        or _is_cut(text, known, _CUT if is_long else _WHOLE)
        or _is_cut(text, made, _CUT)
        or (is_long and _is_copy(text, known))
    )


def _read_texts(rollout: LoggedRollout) -> Iterator[str]:
    """Yield the texts of a rollout's messages and its names."""
    for name in (rollout.group, rollout.task, rollout.label, rollout.run, rollout.trajectory_id):
        if name:
            yield name
    for message in rollout.messages:
        yield from _texts_of(message)


def _texts_of(message: Message) -> Iterator[str]:
    yield message.text
    if message.state:
        yield message.state
    if message.thought:
        yield message.thought
    if message.action:
        yield message.action
    if message.calls_text:
        yield message.calls_text
    for call in message.tool_calls:
        yield call.name
        yield call.arguments
    yield from message.admissible_actions or ()
    for part in message.image_parts:
        yield from (text for _, text in _texts(part, ()))


def _inner_texts(texts: Iterable[str]) -> Iterator[str]:
    """Yield the texts within those texts that are JSON, such as arguments of calls."""
    for text in texts:
        if text[:1] in ("{", "["):
            yield from (inner.strip() for _, inner in _texts(parse_json(text), ()))


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
    inner = [each.strip() for _, each in _texts(value, ())]
    if canonical(value) in read:
        return True
    return bool(inner) and all(each in read or _is_json_of(each, read) for each in inner)
