"""Which tools change something: read off a log, by what equal calls return before and after."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from graphcredit.collector.states.calls import Call, Visit

_COMPARED = 32
"""Most calls of a group that ask for the same and are compared."""

_ENOUGH = 2
"""Reads that a tool must have left as they were to be taken for one that changes nothing, if they
are about the same things: a text or a number is in the arguments of both."""

_OTHERS = 5
"""Reads about other things that say as much as one about the same things."""

_NEARLY = 0.5
"""Share of the suspicion of the most suspicious tool that is too little."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Effects:
    """What a log says of its tools."""

    changing: tuple[str, ...]
    """Tools after which an equal call returned something else."""
    unchanging: tuple[str, ...]
    """Tools after which equal calls returned the same."""
    unknown: tuple[str, ...]
    """Tools of which the log says neither."""

    @property
    def tools(self) -> tuple[str, ...]:
        """Those that count: unknown ones too, so that nothing is united that may differ."""
        return tuple(sorted((*self.changing, *self.unknown)))


_Past = tuple[tuple[str, int], ...]


@dataclass(slots=True)
class _Evidence:
    suspects: list[frozenset[str]] = field(default_factory=list[frozenset[str]])
    """For two equal calls with different results, the tools that only one of them has behind it."""
    unchanged: Counter[str] = field(default_factory=Counter[str])
    """For each tool, the pairs of a call of it and one that returned the same with it behind it and
    without."""
    unchanged_others: Counter[str] = field(default_factory=Counter[str])
    """The same, where they are about other things."""

    def innocence(self, tool: str) -> float:
        """Return how many reads a tool left as they were; those about other things count less."""
        return self.unchanged[tool] + self.unchanged_others[tool] / _OTHERS


def learn_effects(groups: Iterable[Iterable[Sequence[Visit]]]) -> Effects:
    """Return which tools of a log change something.

    Calls of one group that ask for the same are compared, in one rollout and in several: their
    rollouts begin alike, so what only one of them has behind it makes the difference.

    Args:
        groups: For each group, the steps of its rollouts.
    """
    evidence, tools = _Evidence(), set[str]()
    for rollouts in groups:
        group = _Group()
        for visits in rollouts:
            group.add(visits)
        tools |= group.tools
        group.compare(evidence)
    changing = _guilty(evidence)
    unchanging = {tool for tool in tools - changing if evidence.innocence(tool) >= _ENOUGH}
    return Effects(
        changing=tuple(sorted(changing)),
        unchanging=tuple(sorted(unchanging)),
        unknown=tuple(sorted(tools - changing - unchanging)),
    )


class _Group:
    """The calls of a group, each with the successful calls before it."""

    def __init__(self) -> None:
        self.tools: set[str] = set()
        self._done: dict[tuple[str, int], Call] = {}
        """The n-th call that asks for the same, in any of the rollouts."""
        self._alike: defaultdict[str, list[tuple[Call, _Past]]] = defaultdict(list)

    def add(self, visits: Sequence[Visit]) -> None:
        """Take the calls of a rollout."""
        past: _Past = ()
        times = Counter[str]()
        for call in (call for visit in visits for call in visit.calls):
            self.tools.add(call.tool)
            self._alike[call.key].append((call, past))
            if not call.is_failed:
                times[call.key] += 1
                past = (*past, (call.key, times[call.key]))
                self._done[past[-1]] = call

    def compare(self, evidence: _Evidence) -> None:
        """Add what the calls say of each other."""
        for alike in self._alike.values():
            pairs = list(combinations(alike[:_COMPARED], 2))
            if any(one.content != two.content and a == b for (one, a), (two, b) in pairs):
                continue  # it changes by itself
            unchanged: dict[str, str] = {}
            unchanged_others: dict[str, str] = {}
            for (one, a), (two, b) in pairs:
                between = [self._done[key] for key in _differing(a, b)]
                if one.content != two.content:
                    evidence.suspects.append(frozenset(call.tool for call in between))
                    continue
                for call in between:
                    is_about = bool(call.values & one.values)
                    (unchanged if is_about else unchanged_others)[call.key] = call.tool
            evidence.unchanged.update(unchanged.values())
            evidence.unchanged_others.update(unchanged_others.values())


def _differing(a: _Past, b: _Past) -> set[tuple[str, int]]:
    """Return the calls that only one has, or those from where the order differs."""
    if differing := set(a) ^ set(b):
        return differing
    start = next((i for i, (one, two) in enumerate(zip(a, b, strict=True)) if one != two), len(a))
    return set(a[start:])


def _guilty(evidence: _Evidence) -> set[str]:
    """Return tools that explain all differences.

    The only suspect of a difference is guilty. Of the differences that no guilty tool explains, all
    tools are taken that are nearly as suspicious as the most suspicious one.
    """
    guilty, open_cases = set[str](), evidence.suspects
    while open_cases:
        certain = {tool for suspects in open_cases if len(suspects) == 1 for tool in suspects}
        guilty |= certain or _most_suspicious(open_cases, evidence)
        open_cases = [suspects for suspects in open_cases if not suspects & guilty]
    return guilty


def _most_suspicious(cases: Sequence[frozenset[str]], evidence: _Evidence) -> set[str]:
    """Return those that are suspected most often for each read that they left as it was."""
    times = Counter(tool for suspects in cases for tool in suspects)
    suspicion = {tool: number / (1 + evidence.innocence(tool)) for tool, number in times.items()}
    limit = _NEARLY * max(suspicion.values())
    return {tool for tool, degree in suspicion.items() if degree > limit}
