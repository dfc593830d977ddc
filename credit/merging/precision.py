"""How many of the pairs of visits that a merge put on one node are of one state, by the log itself.

No log says which states are one, but it holds evidence against a merge. Two visits of one state
have the same outcomes, and what their texts differ in is forgotten. So pairs of visits on one node
with two texts are asked two questions:

- *Outcomes*, where both took the same action: are the next node, the reward and validity the same?
  Chance, hidden state and next states that were not recognised make a pair disagree, too; so the
  rate b of pairs that are one state by the log (equal texts, or the same actions since the start)
  is taken off: (a − b) / (1 − b) of the pairs with rate a are wrong.
- *Carrying*: is a word that only one of them shows more often in the text before or after this one
  than before or after the other? Noise favours neither side, a part of the state its own. The
  pairs in favour, less those against, are wrong. Only words count that certain looks at one state
  of the group have in common, and no numbers where the visits are not at one time; so a clock, a
  session and advertisements are no evidence.

The estimate is an upper bound: a wrong pair without a trace in the steps beside it is not seen. Its
standard error is that of the jackknife that leaves out one group at a time (Quenouille and Tukey).
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from graphcredit.credit.merging.candidates import Candidates, Union
from graphcredit.credit.merging.segments.observations import observe
from graphcredit.credit.steps.arrays import Ints, factorise, factorise_pairs
from graphcredit.store.files.parse import parse_json
from graphcredit.store.parquet.numbers import arrow_of
from graphcredit.store.schema import MERGE_KEY

SAMPLED_STEPS = 5_000
"""Steps of an iteration that are looked at, in whole groups, about."""

_LEAST_GROUPS = 4
_LEAST_PAIRS = 100
"""With fewer groups or united pairs, chance decides."""
_VISITS = 32
"""Visits of a node that are compared, each with each."""
_LASTING = 0.8
"""Share of the certain looks at a state that show a part of it, mistyped ones left out."""
_LONGEST = 4_000
"""Words of a text that are compared."""


class PairTally(NamedTuple):
    """Sums over pairs of visits on one node."""

    total: float = 0.0
    """All pairs."""
    united: float = 0.0
    """Pairs that a merge made: of two texts, and not certainly of one state."""
    carried: float = 0.0
    """United pairs with agreeing outcomes in which a difference is carried, less those against."""
    acted: float = 0.0
    """United pairs with one action."""
    disagreeing: float = 0.0
    """Those with two outcomes."""
    certain: float = 0.0
    """Other pairs with one action."""
    certain_disagreeing: float = 0.0
    """Those with two outcomes."""

    @property
    def wrong_share(self) -> float:
        """Estimated share of pairs of two states; below 0 where chance has it so."""
        expected = self.certain_disagreeing / self.certain if self.certain else 0.0
        excess = (
            (self.disagreeing - expected * self.acted) / (1 - expected) if expected < 1 else 0.0
        )
        return (max(excess, 0.0) + self.carried) / self.total if self.total else 0.0

    def plus(self, other: "PairTally", times: float = 1.0) -> "PairTally":
        """Return the sum of this one and some times another."""
        return PairTally(*(a + times * b for a, b in zip(self, other, strict=True)))


class GroupEvidence(NamedTuple):
    """What a group says."""

    mark: str
    """Hash of its task."""
    num_pairs: int
    """United pairs that were looked at."""
    tally: PairTally
    """Over all pairs; those of a node that are looked at stand for the others."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MergePrecision:
    """What the log says about the pairs of visits on one node."""

    precision: float
    """Estimated share of them that are of one state; at most that."""
    standard_error: float | None
    """Of `precision`; None with one group."""
    num_pairs: int
    """United pairs that it rests on."""
    num_groups: int
    """Groups that were looked at."""

    @classmethod
    def from_metadata(cls, metadata: Mapping[bytes, bytes]) -> "MergePrecision | None":
        """Return what the metadata of `nodes.parquet` says; None where there is nothing."""
        try:
            stated = parse_json(metadata.get(MERGE_KEY, b"{}")).get("precision")
            return cls(**stated) if stated else None
        except (ValueError, TypeError, AttributeError):
            return None

    def __str__(self) -> str:
        error = "" if self.standard_error is None else f" ± {self.standard_error:.3f}"
        return f"{self.precision:.3f}{error}"

    def as_json(self) -> dict[str, float | int | None]:
        """Return the numbers."""
        return asdict(self)

    def is_below(self, limit: float) -> bool:
        """Return whether it is below a limit, with enough groups and pairs to say so."""
        is_enough = self.num_groups >= _LEAST_GROUPS and self.num_pairs >= _LEAST_PAIRS
        return self.precision < limit and is_enough


def estimate(evidence: Iterable[GroupEvidence]) -> MergePrecision | None:
    """Return the estimate of the groups' evidence, in any order; None without a united pair."""
    judged = sorted(group for group in evidence if group.tally.total)
    num_pairs, number = sum(group.num_pairs for group in judged), len(judged)
    if not num_pairs:
        return None
    total = PairTally()
    for group in judged:
        total = total.plus(group.tally)
    left = np.array([total.plus(group.tally, -1).wrong_share for group in judged])
    error = float(np.sqrt((number - 1) / number * ((left - left.mean()) ** 2).sum()))
    return MergePrecision(
        precision=1 - min(max(total.wrong_share, 0.0), 1.0),
        standard_error=error if number > 1 else None,
        num_pairs=num_pairs,
        num_groups=number,
    )


def gather_evidence(candidates: Candidates, union: Union, share: float) -> list[GroupEvidence]:
    """Return the evidence of a batch.

    Args:
        candidates: The candidates of the batch.
        union: What a merge made of them.
        share: Groups are looked at whose task has a hash in this share of all hashes.
    """
    steps, nodes = candidates.steps, union.nodes
    starts = np.searchsorted(nodes.group_of_step, np.arange(len(nodes.goal_of_group) + 1))
    tasks = steps.task_texts.take(arrow_of(steps.task[starts[:-1]])).to_pylist()
    marks = [hashlib.blake2b(task.encode(), digest_size=8, key=b"check") for task in tasks]
    chosen = [g for g, mark in enumerate(marks) if int(mark.hexdigest(), 16) < share * 2.0**64]
    # Where no two texts became one there is nothing to say.
    merged = set(nodes.group_of_node[nodes.num_texts > 1].tolist())
    if merged.isdisjoint(chosen):
        return []
    visits = observe(steps, candidates.exact, candidates.signature_of(candidates.exact))
    num_steps = len(steps.row)
    outcome = factorise_pairs(
        factorise_pairs(nodes.target_of_step, factorise(steps.reward.view(np.int64))[0])[0],
        steps.is_valid.astype(np.int64),
    )[0]
    result: list[GroupEvidence] = []
    for group in chosen:
        start, stop = int(starts[group]), int(starts[group + 1])
        codes, distinct = factorise(
            np.concatenate([steps.state[start:stop], steps.next_state[start:stop]])
        )
        part = slice(start, stop)
        looks = _Group(
            node=nodes.state_of_step[part],
            text=codes[: stop - start],
            next_text=codes[stop - start :],
            certain=visits.equivalence[:num_steps][part],
            index=visits.index[:num_steps][part],
            trajectory=visits.trajectory[:num_steps][part],
            action=steps.action[part],
            outcome=outcome[part],
            words=[_words(text) for text in steps.state_texts.take(arrow_of(distinct)).to_pylist()],
        )
        result.append(looks.evidence(marks[group].hexdigest()))
    return result


def _words(text: str) -> frozenset[str]:
    return frozenset(text.casefold().split()[:_LONGEST])


@dataclass(frozen=True, kw_only=True, slots=True)
class _Group:
    """The steps of a group; each array is [num_steps]."""

    node: Ints
    text: Ints
    next_text: Ints
    certain: Ints
    index: Ints
    trajectory: Ints
    action: Ints
    outcome: Ints
    words: Sequence[frozenset[str]]
    """Of each text."""

    def evidence(self, mark: str) -> GroupEvidence:
        """Return the sums over the pairs of visits on one node."""
        lasting = self._lasting()
        num_pairs, tally = 0, PairTally()
        for weight, one, other in self._pairs():
            compared = self._compare(one, other, lasting)
            num_pairs += int(compared.united)
            tally = tally.plus(compared, weight)
        return GroupEvidence(mark=mark, num_pairs=num_pairs, tally=tally)

    def _compare(self, one: int, other: int, lasting: frozenset[str]) -> PairTally:
        """Return what a pair of steps says."""
        acted = bool(self.action[one] == self.action[other])
        disagrees = acted and bool(self.outcome[one] != self.outcome[other])
        if self.text[one] == self.text[other] or self.certain[one] == self.certain[other]:
            return PairTally(total=1, certain=acted, certain_disagreeing=disagrees)
        carried = 0 if disagrees else self._carries(one, other, lasting)
        return PairTally(total=1, united=1, acted=acted, disagreeing=disagrees, carried=carried)

    def _pairs(self) -> Iterator[tuple[float, int, int]]:
        """Yield pairs of steps from one node, with how many pairs each stands for."""
        for size, members in _runs(self.node):
            weight = size * (size - 1) / max(len(members) * (len(members) - 1), 1)
            for one, other in combinations(members, 2):
                yield weight, one, other

    def _lasting(self) -> frozenset[str]:
        """Return the words that are seen in all looks at a state, or in none."""
        shown, num_seen = Counter[str](), Counter[str]()
        for _, members in _runs(self.certain):
            here = Counter(word for step in members for word in self.words[self.text[step]])
            shown.update(here)
            num_seen.update(dict.fromkeys(here, len(members)))
        return frozenset(word for word in shown if shown[word] >= _LASTING * num_seen[word])

    def _carries(self, one: int, other: int, lasting: frozenset[str]) -> int:
        """Return 1 where what the texts of two steps differ in is carried, -1 where against."""
        # The text after one of them is that of the other: they are not compared with others.
        if abs(one - other) == 1 and self.trajectory[one] == self.trajectory[other]:
            return 0
        mine, others = self.words[self.text[one]], self.words[self.text[other]]
        only_mine, only_others = (mine - others) & lasting, (others - mine) & lasting
        if self.index[one] != self.index[other]:
            only_mine, only_others = _without_numbers(only_mine), _without_numbers(only_others)
        if not (only_mine or only_others):
            return 0

        def favour(here: int, there: int) -> int:
            beside, opposite = self.words[here], self.words[there]
            return _sign(
                len(only_mine & beside)
                - len(only_mine & opposite)
                + len(only_others & opposite)
                - len(only_others & beside)
            )

        after = favour(int(self.next_text[one]), int(self.next_text[other]))
        if not (self.index[one] and self.index[other]):
            return after
        return _sign(after + favour(int(self.text[one - 1]), int(self.text[other - 1])))


def _runs(label: Ints) -> Iterator[tuple[int, list[int]]]:
    """Yield the places of each label that is there twice: how many, and some of them."""
    order = np.argsort(label, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(label[order])) + 1):
        if len(members) > 1:
            some = np.linspace(0, len(members) - 1, min(len(members), _VISITS)).astype(np.int64)
            yield len(members), members[some].tolist()


def _without_numbers(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words if not any(map(str.isdigit, word)))


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)
