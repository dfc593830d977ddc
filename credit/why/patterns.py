"""Patterns: what a rollout did, in which order, what it was told, and how it ended.

They are read from actions and results alone, so they need no states that rollouts share.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from graphcredit.credit.steps.arrays import Bools, Ints
from graphcredit.credit.why.kinds import ActionKind, kinds_of
from graphcredit.credit.why.log import ERROR, Log
from graphcredit.credit.why.sentences import coded

LEAST = 4
"""Fewest rollouts on each side of a comparison."""
_MOST_KINDS = 1500
"""Kinds of actions that are looked at: those of most rollouts."""
_MOST_ORDERED = 16
"""Kinds whose order is looked at: the number of pairs is quadratic."""
_OFTEN = 3
"""Equal actions that are a repetition."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pattern:
    """Something that some rollouts did and others did not."""

    done: str
    """What those did that have it, as Markdown: `called `x``."""
    left: str
    """What the others did: `never called `x``."""
    steps: Ints
    """The rows of the steps that show it, in order."""
    missing: Ints | None = None
    """The rows of the steps that show its absence, one of each rollout where it could have been;
    None if it could have been in all, and the last step shows that it was not."""
    among: str = ""
    """Which rollouts could have had it, if not all: `called `y``."""
    chance: str = "which ended with"
    """How the step is introduced that shows its absence."""
    part: Literal["course", "end"] = "course"
    """Whether it is about the course of a rollout, or about how it ended."""
    also: str = ""
    """Another thing that the same rollouts did, if there is one."""
    instead: "Pattern | None" = None
    """What all those did with the same tool that could have it and have not, if it has a name."""
    is_act: bool = False
    """Whether only those that have it can be told by it: nobody is blamed for not having it."""
    detail: int
    """How special it is: of patterns that mark the same rollouts, the simplest one is kept."""


def patterns_of(log: Log) -> list[Pattern]:
    """Return the patterns of rollouts that some have and others have not; of equal ones, one."""
    found: dict[bytes, Pattern] = {}
    for pattern in sorted(_all(log, rows_of_kinds(log)), key=lambda each: each.detail):
        has, could = marks_of(log, [pattern])
        num_with = int(has.sum())
        if num_with < LEAST or int(could.sum()) - num_with < LEAST:
            continue
        key = np.packbits(np.stack([has[0], could[0]])).tobytes()
        opposite = np.packbits(np.stack([could[0] & ~has[0], could[0]])).tobytes()
        if key in found:
            found[key] = _with_another(found[key], pattern)
        elif opposite not in found:
            found[key] = pattern
        elif found[opposite].instead is None and _tool_of(found[opposite]) == _tool_of(pattern):
            found[opposite] = replace(found[opposite], instead=pattern)
    return list(found.values())


def _with_another(pattern: Pattern, equal: Pattern) -> Pattern:
    """Return a pattern with another one of the same rollouts, if that is of another tool."""
    is_other = _tool_of(equal) != _tool_of(pattern)
    is_like = (equal.part, equal.is_act) == (pattern.part, pattern.is_act)
    is_one = is_other and is_like and not pattern.also
    return replace(pattern, also=equal.done) if is_one else pattern


def _tool_of(pattern: Pattern) -> str:
    """Return the first word and the tool: `called `open`, whatever its arguments are."""
    return pattern.done.partition("(")[0].rstrip("`").partition("` ")[0].rstrip("`")


def marks_of(log: Log, patterns: Sequence[Pattern]) -> tuple[Bools, Bools]:
    """Return [num_patterns, num_rollouts]: which rollouts have each, and which could have it."""
    has = np.zeros((len(patterns), log.num_rollouts), bool)
    could = np.ones_like(has)
    for number, pattern in enumerate(patterns):
        has[number, log.rollout[pattern.steps]] = True
        if pattern.missing is not None:
            could[number] = False
            could[number, log.rollout[pattern.missing]] = True
    return has & could, could


def rows_of_kinds(log: Log) -> dict[ActionKind, Ints]:
    """Return the rows of the steps of each kind that recurs, those of most rollouts first."""
    ids: dict[ActionKind, int] = {}
    of_action = [
        np.fromiter((ids.setdefault(kind, len(ids)) for kind in kinds_of(action)), int)
        for action in log.actions
    ]
    if not ids:
        return {}
    each = [of_action[code] for code in log.action]
    rows = np.repeat(np.arange(len(each)), [len(kinds) for kinds in each])
    kind = np.concatenate(each)
    recurring = {
        one: rows
        for one, rows in zip(ids, _grouped(rows, kind, len(ids)), strict=True)
        if _recurs(log, rows)
    }
    often = sorted(recurring, key=lambda one: -len(np.unique(log.rollout[recurring[one]])))
    return {one: recurring[one] for one in often[:_MOST_KINDS]}


def _grouped(rows: Ints, code: Ints, num_codes: int) -> list[Ints]:
    """Return the rows of each code, in order."""
    if not num_codes:
        return []
    order = np.argsort(code, kind="stable")
    return np.split(rows[order], np.searchsorted(code[order], np.arange(1, num_codes)))


def _recurs(log: Log, rows: Ints) -> bool:
    if len(rows) < LEAST:
        return False
    rollouts = np.unique(log.rollout[rows])
    groups = log.group[rollouts]
    return len(rollouts) >= LEAST and bool(groups[0] != groups[-1] or log.group[-1] == 0)


def _all(log: Log, kinds: dict[ActionKind, Ints]) -> Iterator[Pattern]:
    for kind, rows in kinds.items():
        yield _pattern(kind.words, rows, kind.detail)
    main = {kind: rows for kind, rows in kinds.items() if kind.detail <= 1}
    main = dict(list(main.items())[:_MOST_ORDERED])
    yield from _ends(log, kinds)
    yield from _in_order(log, main)
    yield from _repeated(log, main)
    yield from _told(log, main)


def _pattern(done: str, steps: Ints, detail: int, *, is_act: bool = False) -> Pattern:
    return Pattern(done=done, left=f"never {done}", steps=steps, detail=detail, is_act=is_act)


def _ends(log: Log, kinds: dict[ActionKind, Ints]) -> Iterator[Pattern]:
    is_last = np.zeros(len(log.rollout), bool)
    is_last[log.last] = True
    for kind, rows in kinds.items():
        if kind.detail <= 1:
            begun = rows[log.index[rows] == 0]
            yield _pattern(f"began with {_ing(kind)}", begun, kind.detail + 3, is_act=True)
        yield Pattern(
            done=f"ended with {_ing(kind)}",
            left=f"did not end with {_ing(kind)}",
            steps=rows[is_last[rows]],
            part="end",
            detail=kind.detail + 1,
        )
    yield Pattern(
        done="was cut off before it was done",
        left="was not cut off before it was done",
        steps=log.last[log.truncated],
        part="end",
        detail=1,
    )
    length = log.index[log.last] + 1
    parts = np.split(length, np.flatnonzero(np.diff(log.group)) + 1)
    middle = np.array([np.median(part) for part in parts])[log.group]
    for word, is_so in (("fewer", length < middle), ("more", length > middle)):
        done = f"took {word} steps than half of the rollouts of their task"
        yield replace(_pattern(done, log.last[is_so], 2, is_act=True), part="end")


def _ing(kind: ActionKind) -> str:
    return kind.noun if kind.verb in ("called", "did", "ran") else kind.noun.removeprefix("with ")


def _in_order(log: Log, kinds: dict[ActionKind, Ints]) -> Iterator[Pattern]:
    """Yield for each two kinds: one after the last other one, before the first, straight after."""
    for other, at in kinds.items():
        rollouts, first = np.unique(log.rollout[at], return_index=True)
        begin = np.full(log.num_rollouts, -1)
        begin[rollouts] = at[first]
        for kind, rows in kinds.items():
            detail = 4 + kind.detail + other.detail
            where = log.rollout[rows]
            is_next = np.isin(rows - 1, at) & (log.index[rows] > 0)
            done = f"{kind.words} straight after {other.noun}"
            yield _pattern(done, rows[is_next], detail + 1, is_act=True)
            if kind == other:
                continue
            yield _after(log, kind, rows, other.name, at, among=other.words, detail=detail)
            yield Pattern(
                done=f"{kind.words} before the first {other.name}",
                left=f"never {kind.words} before the first {other.name}",
                steps=rows[rows < begin[where]],
                missing=at[first],
                among=other.words,
                chance="whose chance was before",
                detail=detail,
            )


def _after(
    log: Log, kind: ActionKind, rows: Ints, noun: str, at: Ints, *, among: str, detail: int
) -> Pattern:
    """Return who did something after the last step of others, among those that have one."""
    end = np.full(log.num_rollouts, len(log.rollout))
    end[log.rollout[at]] = at  # in order, so the last one stays
    return Pattern(
        done=f"{kind.words} after the last {noun}",
        left=f"never {kind.words} after the last {noun}",
        steps=rows[rows > end[log.rollout[rows]]],
        missing=np.unique(end[log.rollout[at]]),
        among=among,
        chance="whose last chance was after",
        detail=detail,
    )


def _repeated(log: Log, kinds: dict[ActionKind, Ints]) -> Iterator[Pattern]:
    """Yield who did the same again and again."""
    key = log.rollout * len(log.actions) + log.action
    order = np.argsort(key, kind="stable")
    count = np.arange(len(key)) - np.searchsorted(key[order], key[order])
    again = np.sort(order[count == _OFTEN - 1])
    times = f"{_OFTEN} times or more"
    yield _pattern(f"did one and the same thing {times}", again, 3, is_act=True)
    for kind, rows in kinds.items():
        if kind.detail == 0:
            same = "" if kind.verb == "did" else " with the same words"
            steps = rows[np.isin(rows, again)]
            yield _pattern(f"{kind.words}{same} {times}", steps, 4, is_act=True)


def _told(log: Log, kinds: dict[ActionKind, Ints]) -> Iterator[Pattern]:
    """Yield who got an error, or a short answer that recurs, and who tried again after an error."""
    is_told = log.told >= 0
    rows = np.flatnonzero(is_told)
    for answer, steps in zip(
        log.answers, _grouped(rows, log.told[rows], len(log.answers)), strict=True
    ):
        if not _recurs(log, steps):
            continue
        yield _pattern(f"got {coded(answer)}", steps, 3, is_act=True)
        for kind, of_kind in kinds.items():
            if kind.detail == 0:
                shown = steps[np.isin(steps, of_kind)]
                got = _pattern(f"got {coded(answer)} from {kind.noun}", shown, 4, is_act=True)
                yield got
                if len(shown) and re.search(ERROR, answer.replace("#", "0")):
                    noun = coded(answer)
                    yield _after(log, kind, of_kind, noun, shown, among=got.done, detail=5)
