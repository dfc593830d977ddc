"""Which tools change something: read off a log, by what equal calls return before and after."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, cast

from graphcredit.collector.states.calls import Call, Visit
from graphcredit.collector.states.content import as_json, parsed

_COMPARED = 16
"""Most calls of a group that ask for the same and are compared."""

_SURE = 4.0
"""Standard errors by which equal calls must differ more often with a tool between them than without
it, before the tool is said to change something."""

_ENOUGH = 2
"""Reads that a tool must have left as they were to be taken for one that changes nothing, if they
are about the same things: a text or a number is in the arguments of both."""

_OTHERS = 5
"""Reads about other things that say as much as one about the same things."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Effects:
    """What a log says of its tools."""

    changing: tuple[str, ...]
    """Tools after which equal calls returned something else."""
    unchanging: tuple[str, ...]
    """Tools after which equal calls returned the same."""
    unknown: tuple[str, ...]
    """Tools of which the log says neither."""

    @property
    def tools(self) -> tuple[str, ...]:
        """Those that count: unknown ones too, so that nothing is united that may differ."""
        return tuple(sorted((*self.changing, *self.unknown)))


_Key = tuple[str, int]
"""A call with its arguments, and how many times it was made up to then."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two calls of a group that ask for the same."""

    is_unequal: bool
    """Whether they returned different things."""
    between: frozenset[str]
    """Tools that only one of them has behind it."""


def learn_effects(groups: Iterable[Iterable[Sequence[Visit]]]) -> Effects:
    """Return which tools of a log change something.

    Calls of one group that ask for the same are compared, in one rollout and in several, and so is
    what different tools say of one field of one thing: the rollouts begin alike, so what they
    return depends on what was done before. A tool changes
    something if such calls differ more often where only one of them has it behind it, among pairs
    that no other such tool stands between. The surest one is taken first: the others must explain
    what it does not. No two such calls that differ are left with none between them but tools that
    are said to change nothing. What people say in whole sentences is not compared.
    """
    tools: set[str] = set()
    pairs: list[_Pair] = []
    innocence: Counter[str] = Counter()
    for rollouts in groups:
        group = _Group()
        for visits in rollouts:
            group.add(visits)
        tools |= group.tools
        group.compare(pairs, innocence)
    changing: set[str] = set()
    while True:
        left = [pair for pair in pairs if not pair.between & changing]
        suspicion = {tool: _suspicion(tool, left) for tool in sorted(tools - changing)}
        worst = max(suspicion, key=suspicion.__getitem__, default="")
        if not worst or suspicion[worst] < _SURE:
            break
        changing.add(worst)
    unchanging = {
        tool
        for tool, degree in suspicion.items()
        if degree < _SURE / 2 and innocence[tool] >= _ENOUGH * _OTHERS
    }
    differences = [pair.between for pair in left if pair.is_unequal]
    while differences := [each for each in differences if each and each <= unchanging]:
        times = Counter(tool for between in differences for tool in between)
        unchanging.remove(max(sorted(times), key=lambda tool: (times[tool], suspicion[tool])))
    return Effects(
        changing=tuple(sorted(changing)),
        unchanging=tuple(sorted(unchanging)),
        unknown=tuple(sorted(tools - changing - unchanging)),
    )


def _suspicion(tool: str, pairs: Sequence[_Pair]) -> float:
    """Return by how many standard errors pairs with a tool between them differ more often."""
    with_it = [pair.is_unequal for pair in pairs if tool in pair.between]
    without = [pair.is_unequal for pair in pairs if tool not in pair.between]
    if not any(with_it):
        return 0.0
    share = (sum(with_it) + sum(without) + 1) / (len(pairs) + 2)
    more = sum(with_it) / len(with_it) - sum(without) / max(1, len(without))
    return more / math.sqrt(share * (1 - share) * (1 / len(with_it) + 1 / max(1, len(without))))


@dataclass(frozen=True, slots=True)
class _Read:
    """What a log says of one thing at one time."""

    content: str
    values: frozenset[str]
    """What it is about: the texts and numbers of the call's arguments."""
    past: Mapping[str, list[_Key]]
    """By tool, its successful calls in the rollout."""
    before: Mapping[str, tuple[int, int]]
    """By tool, how many of them are before it, and their hash."""

    def calls_before(self, tool: str) -> list[_Key]:
        """Return the successful calls of a tool before it."""
        number, _ = self.before.get(tool, (0, 0))
        return self.past.get(tool, [])[:number]

    def between(self, other: "_Read") -> set[str]:
        """Return the tools whose calls before the two are not the same, in the same order."""
        return {tool for tool, _ in self.before.items() ^ other.before.items()}


class _Group:
    """The reads of a group, each with the successful calls before it."""

    def __init__(self) -> None:
        self.tools: set[str] = set()
        self._done: dict[_Key, Call] = {}
        self._results: defaultdict[str, list[_Read]] = defaultdict(list)
        """By what was asked for, as many as are compared."""
        self._fields: defaultdict[str, list[_Read]] = defaultdict(list)
        """By thing and field, whichever tool says it: one that changes a thing often shows it."""

    def add(self, visits: Sequence[Visit]) -> None:
        """Take the calls of a rollout."""
        past: defaultdict[str, list[_Key]] = defaultdict(list)
        before: dict[str, tuple[int, int]] = {}
        times: Counter[str] = Counter()
        for call in (call for visit in visits for call in visit.calls):
            self.tools.add(call.tool)
            if call.content and not _is_said(call):
                _keep(self._results[call.key], _Read(call.content, call.values, past, before))
            if call.is_failed:
                continue
            times[call.key] += 1
            key = (call.key, times[call.key])
            number, earlier = before.get(call.tool, (0, 0))
            past[call.tool].append(key)
            before = {**before, call.tool: (number + 1, hash((earlier, key)))}
            self._done[key] = call
            for name, value in _fields_of_what_was_asked_for(call):
                _keep(self._fields[name], _Read(value, call.values, past, before))

    def compare(self, pairs: list[_Pair], innocence: Counter[str]) -> None:
        """Add what the reads say of the calls.

        Args:
            pairs: Gets all pairs.
            innocence: For each tool, gets the pairs of a call of it and one that returned the same
                with it behind it and without; `_OTHERS` times where they are about the same things.
        """
        for alike in self._fields.values():
            pairs += [_pair(one, two) for one, two in combinations(alike, 2)]
        for alike in self._results.values():
            harmless: dict[str, tuple[str, int]] = {}
            for one, two in combinations(alike, 2):
                pairs.append(pair := _pair(one, two))
                for tool in () if pair.is_unequal else pair.between:
                    for key in set(one.calls_before(tool)) ^ set(two.calls_before(tool)):
                        is_about = bool(self._done[key].values & one.values)
                        harmless[key[0]] = (tool, _OTHERS if is_about else 1)
            for tool, weight in harmless.values():
                innocence[tool] += weight


def _pair(one: _Read, two: _Read) -> _Pair:
    return _Pair(one.content != two.content, frozenset(one.between(two)))


def _keep(reads: list[_Read], read: _Read) -> None:
    if len(reads) < _COMPARED:
        reads.append(read)


def _is_said(call: Call) -> bool:
    """Return whether a result is talk: a user words things anew."""
    is_sentence = call.content[:1] not in "{[" and call.content[-1:] in (".", "?", "!")
    return is_sentence and not call.is_failed


def _fields_of_what_was_asked_for(call: Call) -> Iterator[tuple[str, str]]:
    """Yield the fields of a result that is the thing whose id the arguments have."""
    result = parsed(call.result)
    if not isinstance(result, dict):
        return
    fields = cast("dict[str, Any]", result)
    named = [n for n, v in fields.items() if n.endswith("id") and str(v) in call.values]
    for name, value in fields.items() if named else ():
        yield f"{named[0]} {fields[named[0]]}.{name}", as_json(value)
