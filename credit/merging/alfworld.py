"""A household text game's state completed: what the agent carries, and what was done to it.

"You arrive at countertop 1" is the same text whether the agent carries a dirty apple or a clean
one. This adds both, from the actions of the trajectory so far: `You carry apple 1 [cleaned].`
Source: RewardFlow, Appendix B.1 (ALFWorld).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from graphcredit.credit.steps.arrays import factorise_pairs
from graphcredit.credit.steps.complete import Steps
from graphcredit.store.parquet.numbers import array_of, numpy_of

_TAKE = re.compile(r"take (.+) from .+")
_PUT = re.compile(r"(?:put|move) (.+) (?:in/on|in|on|to) .+")
_CHANGE = re.compile(r"(clean|heat|cool) (.+) with .+")
_MARK = {"clean": "cleaned", "heat": "heated", "cool": "cooled"}
_REFUSED = "Nothing happens"


@dataclass(frozen=True, slots=True)
class _Effect:
    """What an action does to an object."""

    kind: str
    """`take`, `put`, or the mark that the object gets."""
    name: str
    """The object."""


def with_inventory(steps: Steps) -> Steps:
    """Return the steps with what is carried, and every mark so far, added to each state's text.

    Invalid actions, and those that the game answered with "Nothing happens", have no effect. A text
    to which there is nothing to add stays as it is. A heated object is no longer cooled, and the
    other way round.

    Args:
        steps: Complete trajectories, sorted.
    """
    effects = [_effect_of(text) for text in steps.action_texts.to_pylist()]
    refusals = np.array([_REFUSED in text for text in steps.state_texts.to_pylist()], bool)
    acts = (steps.is_valid & ~refusals[steps.next_state]).tolist()
    taken = [effects[a] if acted else None for a, acted in zip(steps.action, acts, strict=True)]
    before, after = list[str](), list[str]()
    for start, stop in pairwise(steps.trajectory_start.tolist()):
        notes = ["", *_notes(taken[start:stop])]
        before += notes[:-1]
        after += notes[1:]
    codes = array_of([*before, *after], pa.string()).dictionary_encode()
    code, text, note = factorise_pairs(
        np.concatenate([steps.state, steps.next_state]), numpy_of(codes.indices).astype(np.int64)
    )
    old, added = steps.state_texts.to_pylist(), codes.dictionary.to_pylist()
    texts = [old[t] + added[n] for t, n in zip(text.tolist(), note.tolist(), strict=True)]
    return replace(
        steps,
        state=code[: len(steps.row)],
        next_state=code[len(steps.row) :],
        state_texts=array_of(texts, pa.string()),
    )


def _effect_of(action: str) -> _Effect | None:
    action = action.strip()
    if match := _TAKE.fullmatch(action):
        return _Effect("take", match[1])
    if match := _PUT.fullmatch(action):
        return _Effect("put", match[1])
    if match := _CHANGE.fullmatch(action):
        return _Effect(_MARK[match[1]], match[2])
    return None


def _notes(effects: Iterable[_Effect | None]) -> Iterator[str]:
    """Yield the note that holds after each step of a trajectory, which starts with empty hands."""
    carried, marks, note = set[str](), dict[str, set[str]](), ""
    for effect in effects:
        if effect:
            _take_effect(effect, carried, marks)
            note = _note(carried, marks)
        yield note


def _take_effect(effect: _Effect, carried: set[str], marks: dict[str, set[str]]) -> None:
    if effect.kind == "take":
        carried.add(effect.name)
    elif effect.kind == "put":
        carried.discard(effect.name)
    else:
        opposite = {"heated": "cooled", "cooled": "heated"}.get(effect.kind, "")
        marks.setdefault(effect.name, set()).discard(opposite)
        marks[effect.name].add(effect.kind)


def _note(carried: set[str], marks: dict[str, set[str]]) -> str:
    def marked(name: str) -> str:
        return " ".join([name, *(f"[{mark}]" for mark in sorted(marks.get(name, ())))])

    inventory = f"\nYou carry {', '.join(map(marked, sorted(carried)))}." if carried else ""
    elsewhere = [marked(name) for name in sorted(marks) if name not in carried]
    return inventory + (f"\nElsewhere: {', '.join(elsewhere)}." if elsewhere else "")
