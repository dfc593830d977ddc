"""What each action of an episode was chosen in: its own row, or the one before, says it."""

import hashlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, cast

from graphcredit.collector.importers.formats.step_shapes import (
    SEEN,
    Row,
    fields_for,
    has_part,
    part,
)
from graphcredit.collector.importers.messages.values import (
    RecordError,
    as_number,
    canonical,
    first_of,
)
from graphcredit.collector.importers.rules.states import NOTHING_SEEN

_PROMPTS = ("prompt", "question", "instruction", "goal", "task_description")
"""What the first action was chosen in, where rows have only what actions led to."""

_LEADS = (
    "the observation of a row is taken for what its action led to, since it stands behind the "
    "action. If the action was chosen in it: --columns state=FIELD"
)
_CHOSEN = (
    "the observation of a row is taken for what its action was chosen in; the fields are in "
    "alphabetical order, which does not tell. If the action led to it: --columns next_state=FIELD"
)
_BLIND = (
    "the rows have no state: the actions before each step are its state, which is exact where the "
    "environment is deterministic. --columns state=FIELD or next_state=FIELD names one"
)
_JUMPS = "some steps have a next state that is not the state of the next row: that row decides"

_MOST_CHARACTERS = 2_000
"""Of actions that a state tells; of more the last ones, and a digest of all."""

_SORTED_BY_ACCIDENT = 4
"""Fields from which on their alphabetical order is hardly the writer's."""

_MOST_EXACT = 1 << 53
"""Whole floats below it have no other neighbours that are whole."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What an action was chosen in."""

    state: str
    text: str
    """The whole observation; the same where a log has one of the two."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Aligned:
    """The actions of an episode, and what each was chosen in."""

    rows: Sequence[Row]
    """Those of the actions."""
    seen: Sequence[Seen]
    final: Seen | None
    """What the last action led to, where the log has it."""
    rewards: Sequence[float | None]
    notes: tuple[str, ...] = ()
    state_field: str | None = None
    """The field taken for what the action was chosen in, where nothing but its name says so."""


def aligned_steps(rows: Sequence[Row], places: Sequence[str], facts: Row) -> Aligned:
    """Return the steps of an episode.

    Args:
        rows: Its rows in order. The first may be that of a reset, and the last may have only what
            the last action led to; neither has an action then.
        places: Where they are, for messages.
        facts: What is said of the episode.
    """
    seen = [_seen(row) for row in rows]
    following = [_text_or_none(part(row, "next_state")) for row in rows]
    rewards = [_reward(row, place) for row, place in zip(rows, places, strict=True)]
    notes: tuple[str, ...] = ()
    start = Seen(state=NOTHING_SEEN, text=NOTHING_SEEN)
    if (prompt := first_of(facts, _PROMPTS)) is not None:
        start = _same(text_of_value(prompt))
    field: str | None = None
    last = _same(following[-1]) if following[-1] is not None else None
    acts = [part(row, "action") is not None for row in rows]
    if not any(has_part(row, name) for row in rows for name in SEEN):
        rows, places = list(compress(rows, acts)), list(compress(places, acts))
        rewards = list(compress(rewards, acts))
        before, last, notes = [start, *_acted(rows[:-1])], None, (_BLIND,)
    elif acts[:2] == [False, True]:
        rows, places, rewards = rows[1:], places[1:], rewards[1:]
        before, last = seen[:-1], seen[-1]
    elif acts[-2:] == [True, False] or (len(rows) > 1 and _is_after_end(rows[-1])):
        rewards = _of_actions(rewards)
        rows, before, last = rows[:-1], seen[:-1], seen[-1] or last
    elif not any(seen):
        led_to = [None if text is None else _same(text) for text in following]
        before, last = [start, *led_to[:-1]], led_to[-1]
    elif _is_behind(rows[0]) and not _is_sorted(rows[0]):
        before, last, notes = [start, *seen[:-1]], seen[-1], (_LEADS,)
    else:
        before = seen
        notes = (_CHOSEN,) if _is_behind(rows[0]) else ()
        if not any(following):
            names = (*fields_for(rows[0], "state"), *fields_for(rows[0], "observation"))
            field = next(iter(names), None)
        pairs = zip(following, seen[1:], strict=False)
        if any(a is not None and b is not None and a != b.state for a, b in pairs):
            notes = (*notes, _JUMPS)
    for row, each, place in zip(rows, before, places, strict=False):
        if part(row, "action") is None or each is None:
            raise RecordError(_lacks(row, "action" if each else "state", place or "a row"))
    states = cast("list[Seen]", before)
    return Aligned(
        rows=rows, seen=states, final=last, rewards=rewards, notes=notes, state_field=field
    )


def _acted(rows: Sequence[Row]) -> Iterator[Seen]:
    """Yield the actions up to each row, as what the next one was chosen in."""
    digest, last, length = hashlib.sha256(), deque[str](), 0
    for number, row in enumerate(rows, start=1):
        arguments = part(row, "arguments")
        called = "" if arguments is None else f"({text_of_value(arguments)})"
        last.append(f"{text_of_value(part(row, 'action'))}{called}")
        digest.update(f"{len(last[-1])}:{last[-1]}".encode("utf-8", "surrogatepass"))
        length += len(last[-1])
        while length > _MOST_CHARACTERS and len(last) > 1:
            length -= len(last.popleft())
        others = number - len(last)
        more = [f"[{others} actions before, {digest.hexdigest()[:16]}]"] if others else []
        yield _same("\n".join([*more, *last]))


def _lacks(row: Row, name: str, place: str) -> str:
    """Say that a row has no state or action, which costs its episode."""
    if not has_part(row, name) and not (name == "state" and has_part(row, "observation")):
        remedy = f"--columns {name}=FIELD names it, of its fields {', '.join(row)}"
    elif name == "action":
        remedy = (
            "A null may stand in the first row (the reset) or the last one (what the last action "
            "led to) alone"
        )
    else:
        remedy = "Fill it"
    return f"each step must have a state and an action: {place} has no {name}. {remedy}"


def _of_actions(rewards: list[float | None]) -> list[float | None]:
    """Return rewards of actions, where the last row has none and may have a reward all the same.

    If the first row has none, each is what the row's observation came with.
    """
    if not rewards[-1]:
        return rewards[:-1]
    if not rewards[0]:
        return rewards[1:]
    return [*rewards[:-2], (rewards[-2] or 0.0) + rewards[-1]]


def _is_after_end(row: Row) -> bool:
    """Return whether a row is the last one of RLDS, whose action means nothing."""
    return bool(row.get("is_last")) and "is_first" in row


def _is_behind(row: Row) -> bool:
    """Return whether an observation stands behind its action.

    A program that logs after its environment's step writes action and observation, one that logs
    before it observation and action.
    """
    names = list(row)
    seen = next((name for name in ("observation", "obs", "ob") if row.get(name) is not None), None)
    action = next(iter(fields_for(row, "action")), None)
    if None in (seen, action) or has_part(row, "state") or has_part(row, "next_state"):
        return False
    return names.index(str(action)) < names.index(str(seen))


def _is_sorted(row: Row) -> bool:
    names = list(row)
    return len(names) >= _SORTED_BY_ACCIDENT and names == sorted(names)


def _seen(row: Row) -> Seen | None:
    observation = _text_or_none(part(row, "observation"))
    state = _text_or_none(part(row, "state"))
    if state is None:
        return None if observation is None else _same(observation)
    return Seen(state=state, text=state if observation is None else observation)


def _same(text: str) -> Seen:
    return Seen(state=text, text=text)


def _reward(row: Row, place: str) -> float | None:
    return as_number(part(row, "reward"), f"the reward of {place or 'each step'}")


def _text_or_none(value: object) -> str | None:
    return None if value is None else text_of_value(value)


def text_of_value(value: object) -> str:
    """Return a text for a state or an action that is equal for equal values; empty for null."""
    match value:
        case None:
            return ""
        case str():
            return value
        case bytes():
            return f"[{len(value)} bytes {hashlib.sha256(value).hexdigest()[:12]}]"
        case _:
            return canonical(_plain(value))


def _plain(value: Any) -> Any:
    """Return a value as it is whatever file it is from: a table writes 1 as 1.0, and pads nulls."""
    match value:
        case float() if value.is_integer() and abs(value) < _MOST_EXACT:
            return int(value)
        case Mapping():
            fields = cast("Mapping[str, Any]", value).items()
            return {name: _plain(each) for name, each in fields if each is not None}
        case list() | tuple():
            return [_plain(each) for each in cast("Sequence[Any]", value)]
        case _:
            return value
