"""Join rows of single steps to trajectories, by the steps before that each row remembers.

A row follows another if it remembers the other's observation and action, and both remember the
same before that. Several rows may have equal steps so far: then it does not matter which of them
goes on, if their rewards are equal too. Otherwise nobody can tell, and all of them are left out.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

PENALTY = 0.11
"""The rewards of rows of one episode may differ by this: invalid actions are fined 0.1."""

_MOVES = ("up", "down", "left", "right", "still")
_KEPT_OF_INVALID = (30, 20, 10)
"""How many last characters of an answer without an action ALFWorld and WebShop take for one."""

AMBIGUOUS = "row of a step that may belong to several trajectories"
ORPHAN = "row of a step whose step before is not in the file"


@dataclass(frozen=True, kw_only=True, slots=True)
class PastStep:
    """A step that a prompt remembers."""

    number: int
    observation: str
    action: str


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRow:
    """A row of a log: one step of a trajectory."""

    number: int
    """Which step of its trajectory, from 1."""
    past: tuple[PastStep, ...]
    """The last steps before it, in order."""
    observation: str
    admissible_actions: tuple[str, ...] | None
    action: str | None
    """None if the answer has none."""
    score: float
    trajectory: str | None
    """The id of its trajectory, if the log has one."""
    source: Mapping[str, Any]


@dataclass(kw_only=True, slots=True)
class _Chain:
    """A trajectory so far."""

    rows: list[StepRow]
    steps: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Observations and actions before its last row."""
    is_broken: bool = False


def joined_rows(rows: Sequence[StepRow]) -> tuple[list[tuple[StepRow, ...]], dict[str, int]]:
    """Return the trajectories, and how many rows were left out, by reason."""
    if all(row.trajectory is not None for row in rows):
        by_id: dict[str | None, list[StepRow]] = defaultdict(list)
        for row in sorted(rows, key=lambda row: row.number):
            by_id[row.trajectory].append(row)
        ids = dict.fromkeys(row.trajectory for row in rows)
        return [tuple(by_id[name]) for name in ids], {}
    steps: dict[int, list[StepRow]] = defaultdict(list)
    for row in rows:
        if row.past or row.number == 1:
            steps[row.number].append(row)
    num_orphans = len(rows) - sum(map(len, steps.values()))
    ended: list[_Chain] = []
    open_chains = [_Chain(rows=[row]) for row in steps.pop(1, [])]
    for number in range(2, max(steps, default=1) + 1):
        going, num_new = _step(open_chains, steps[number])
        num_orphans += num_new
        ended += [chain for chain in open_chains if len(chain.rows) < number]
        open_chains = going
    chains = [*ended, *open_chains]
    num_ambiguous = sum(len(chain.rows) for chain in chains if chain.is_broken)
    left_out = {AMBIGUOUS: num_ambiguous, ORPHAN: num_orphans}
    whole = [tuple(chain.rows) for chain in chains if not chain.is_broken]
    return whole, {reason: count for reason, count in left_out.items() if count}


def _step(chains: Sequence[_Chain], rows: Sequence[StepRow]) -> tuple[list[_Chain], int]:
    """Join the rows of a step to the chains before it.

    Returns:
        The chains that go on, and how many rows have none.
    """
    going: list[_Chain] = []
    num_orphans = 0
    for before, after in _matched(chains, rows):
        num_orphans += max(0, len(after) - len(before))
        # It matters which chain goes on, unless all have the same steps.
        is_clear = all(c.steps == before[0].steps and not c.is_broken for c in before)
        if after and not (is_clear and len(after) <= len(before)):
            for chain in before:
                chain.is_broken = True
        for chain, row in zip(before, after, strict=False):
            chain.rows.append(row)
            chain.steps.append((row.past[-1].observation, row.past[-1].action))
            going.append(chain)
    return going, num_orphans


def _matched(
    chains: Sequence[_Chain], rows: Sequence[StepRow]
) -> list[tuple[list[_Chain], list[StepRow]]]:
    """Return the chains and the rows that fit each other, by steps and reward."""
    before: dict[Any, list[_Chain]] = defaultdict(list)
    after: dict[Any, list[StepRow]] = defaultdict(list)
    lengths = {len(row.past) for row in rows}
    for row in rows:
        after[_key(row.past[:-1], row.past[-1].observation, row.past[-1].action)].append(row)
    for chain in chains:
        last = chain.rows[-1]
        keys = (
            _key(last.past[len(last.past) - length + 1 :], last.observation, action)
            for length in lengths
            for action in _possible_actions(last)
        )
        key = next((key for key in keys if key in after), None)
        if key is not None:
            before[key].append(chain)
    return [pair for key in after for pair in _by_reward(before.get(key, []), after[key])]


def _key(past: Sequence[PastStep], observation: str, action: str) -> Any:
    """Return what must be equal; some templates put a full stop behind an observation."""
    steps = [(step.number, step.observation, step.action) for step in past]
    return tuple(
        (number, seen.strip(" .\n"), done.strip().lower())
        for number, seen, done in (*steps, (0, observation, action))
    )


def _possible_actions(row: StepRow) -> Iterator[str]:
    """Yield what the environment may have made of an answer; it remembers its own words for it."""
    if row.action is not None:
        yield row.action
        yield from (move for move in _MOVES if move in row.action.lower())
    answer = row.source["output"]
    yield from (answer[-length:] for length in _KEPT_OF_INVALID)
    yield "still"


def _by_reward(
    chains: list[_Chain], rows: list[StepRow]
) -> list[tuple[list[_Chain], list[StepRow]]]:
    """Cut what fits by steps where the rewards differ by more than a penalty."""
    scores = sorted({*(chain.rows[-1].score for chain in chains), *(row.score for row in rows)})
    cuts = [(low + high) / 2 for low, high in pairwise(scores) if high - low > PENALTY]

    def number_of(score: float) -> int:  # not-a-number is in the first
        return sum(score > cut for cut in cuts)

    return [
        (
            [chain for chain in chains if number_of(chain.rows[-1].score) == number],
            [row for row in rows if number_of(row.score) == number],
        )
        for number in range(len(cuts) + 1)
    ]
