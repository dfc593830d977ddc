"""The rules: what each takes for the state of an agent that uses tools.

A rule gets the steps of a trajectory and yields a text for each: the state before it. What an agent
has done or learned is a set: in which order makes no difference.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from graphcredit.collector.states.calls import Call, Visit
from graphcredit.collector.states.content import (
    MOST_CHARACTERS,
    NOTHING_DONE,
    Digest,
    TextSet,
    as_json,
    parsed,
    shortened,
)

ToolRule = Callable[[Sequence[Visit]], list[str]]
"""Returns the state before each step."""

_MOST_FACTS = 2000
"""Characters of facts that a state shows; a digest stands for the rest."""

_IDENTIFIES = ("id", "number", "name", "code")


def calls(visits: Sequence[Visit], tools: frozenset[str] | None = None) -> list[str]:
    """Return the set of successful calls, with their arguments; of some tools, or of all."""

    def key(call: Call) -> str | None:
        counts = not call.is_failed and (tools is None or call.tool in tools)
        return call.key if counts else None

    return _set_of(visits, key)


def effects(visits: Sequence[Visit], tools: frozenset[str]) -> list[str]:
    """Return the successful calls of some tools, each as often as it was made.

    Calls that have no text and no number of their arguments in common are about different things:
    their order makes no difference. Others stay in the order in which they were made.
    """
    done: list[Call] = []
    num_characters = 0
    all_, last_of = Digest(), dict[str, str]()
    texts: list[str] = []
    for visit in visits:
        is_short = num_characters <= MOST_CHARACTERS
        shown = "\n".join(shortened(call.key) for call in done) if is_short else str(all_)
        texts.append(shown or NOTHING_DONE)
        for call in visit.calls:
            if call.is_failed or call.tool not in tools:
                continue
            before = sorted({last_of[value] for value in call.values if value in last_of})
            last_of |= dict.fromkeys(call.values, all_.add("\0".join((call.key, *before))))
            num_characters += len(shortened(call.key)) + 1
            if num_characters <= MOST_CHARACTERS:
                _insert(done, call)
    return texts


def _insert(done: list[Call], call: Call) -> None:
    """Insert a call into others, so that equal effects give one list.

    It goes behind the last one that is about the same thing, and there before the greater ones.
    """
    place = len(done)
    while place and not done[place - 1].values & call.values:
        place -= 1
    while place < len(done) and done[place].key <= call.key:
        place += 1
    done.insert(place, call)


def results(visits: Sequence[Visit]) -> list[str]:
    """Return the set of results, by their content; errors are results too."""
    return _set_of(visits, lambda call: call.content or None)


def last_tool(visits: Sequence[Visit]) -> list[str]:
    """Return the last tool that was called with success."""
    texts = [NOTHING_DONE]
    for visit in visits:
        done = [call.tool for call in visit.calls if not call.is_failed]
        texts.append(f"after {done[-1]}" if done else texts[-1])
    return texts[:-1]


def last(visits: Sequence[Visit]) -> list[str]:
    """Return what the agent last saw."""
    return [visit.seen for visit in visits]


def facts(visits: Sequence[Visit]) -> list[str]:
    """Return what the results say, field by field; of a field that changed, the last value."""
    known: dict[str, str] = {}
    texts: list[str] = []
    for visit in visits:
        lines = "\n".join(f"{name} = {value}" for name, value in sorted(known.items()))
        texts.append(shortened(lines, _MOST_FACTS) or NOTHING_DONE)
        for call in visit.calls:
            if not call.is_failed:
                known.update(_facts_of(call))
    return texts


def _set_of(visits: Sequence[Visit], part: Callable[[Call], str | None]) -> list[str]:
    parts = TextSet()
    texts: list[str] = []
    for visit in visits:
        texts.append(str(parts) or NOTHING_DONE)
        for text in map(part, visit.calls):
            if text is not None:
                parts.add(text)
    return texts


def _facts_of(call: Call) -> Iterator[tuple[str, str]]:
    value = parsed(call.result)
    if value is not None:
        # A list names nothing itself: it is what this call was asked for.
        yield from _fields(value, call.key if isinstance(value, list) else "")
    elif call.content:
        yield call.key, shortened(call.content)


def _fields(value: Any, owner: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of a JSON value, each with the name of the thing that it is of."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        owner = _name_of(fields) or owner
        for name, part in fields.items():
            yield from _fields(part, f"{owner}.{name}" if owner else name)
    elif isinstance(value, list) and all(isinstance(part, dict) for part in value):
        things = cast("list[dict[str, Any]]", value)
        names = [_name_of(thing) for thing in things]
        if None in names or len(set(names)) < len(names):
            yield owner, shortened(as_json(value))
            return
        yield owner, as_json(names)
        for thing in things:
            yield from _fields(thing, owner)
    else:
        yield owner, shortened(as_json(value))


def _name_of(fields: dict[str, Any]) -> str | None:
    """Return the first field that identifies a thing, with its value."""
    for name, value in fields.items():
        is_value = isinstance(value, str | int) and not isinstance(value, bool)
        if is_value and name.lower().rpartition("_")[2] in _IDENTIFIES:
            return f"{name} {value}"
    return None
