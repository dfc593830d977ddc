"""Counts over pairs of observations: what a value goes with, and what it does not.

A place is where a value stands, such as the second number of a line. All arrays are [num_places].
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphcredit.credit.merging.segments.observations import Observations
from graphcredit.credit.steps.arrays import Bools, Floats, Ints, factorise_pairs

LONG = 4
"""Characters of a value that no other rollout has by chance, and that may be used later."""
Z = 3.0
"""Standard errors that are no chance: 1 in 700 one-sided, and some dozens of places are tested."""


@dataclass(frozen=True, kw_only=True)
class Sightings:
    """Values at places, at most one for each place and observation; arrays are [num_sightings]."""

    place: Ints
    observation: Ints
    value: Ints
    """Equal for equal values; 0 where nothing is shown."""
    size: Floats
    """How large the value is."""
    names: Sequence[tuple[str, ...]]
    """The values as they were written: several where a place is in a text several times."""
    num_places: int


def agreement(place: Ints, cell: Ints, value: Ints, num_places: int) -> tuple[Floats, Floats]:
    """Return how many pairs within a cell have one value, and how many pairs there are."""
    among, of_place, _ = factorise_pairs(place, cell)
    size = np.bincount(among).astype(np.float64)
    equal, of_cell, _ = factorise_pairs(among, value)
    times = np.bincount(equal).astype(np.float64)
    pairs = np.bincount(of_place, size * (size - 1) / 2, num_places)
    agreeing = np.bincount(of_place[of_cell], times * (times - 1) / 2, num_places)
    return _floats(agreeing), _floats(pairs)


def _floats(counts: NDArray[Any]) -> Floats:
    return counts.astype(np.float64)


def dependence(place: Ints, cell: Ints, value: Floats, label: Ints, num_places: int) -> Floats:
    """Return by how many standard errors the label depends on the value, among one cell's.

    In the order of their values, neighbours have one label more often than chance has it
    (a test of runs, Wald and Wolfowitz 1940).
    """
    among, of_place, _ = factorise_pairs(place, cell)
    # Equal values in any order: in that of the log, neighbours would be of one rollout.
    ties = np.random.default_rng(0).permutation(len(value))
    order = np.lexsort((ties, value, among))
    here, there = order[:-1], order[1:]
    beside = among[here] == among[there]
    same = beside & (label[here] == label[there])
    num_cells = len(of_place)
    size = np.bincount(among, minlength=num_cells).astype(np.float64)
    equal, of_cell, _ = factorise_pairs(among, label)
    times = np.bincount(equal).astype(np.float64)
    chance = np.bincount(of_cell, times * (times - 1), num_cells) / np.maximum(size * (size - 1), 1)
    observed = np.bincount(place[here], same, num_places)
    expected = np.bincount(of_place, (size - 1) * chance, num_places)
    variance = np.bincount(of_place, (size - 1) * chance * (1 - chance), num_places)
    return _floats((observed - expected) / np.sqrt(np.maximum(variance, 1e-9)))


def partners(cell: Ints) -> Ints:
    """Return [n] another member of each one's cell; -1 where it is alone."""
    order = np.argsort(cell, kind="stable")
    starts = np.flatnonzero(np.diff(cell[order], prepend=-1))
    partner = np.empty(len(cell), np.int64)
    following = np.roll(order, -1)
    ends = np.append(starts[1:], len(order)) - 1
    following[ends] = order[starts]
    partner[order] = following
    return np.where(partner == np.arange(len(cell)), -1, partner)


class PlaceStatistics:
    """What the values at places go with."""

    def __init__(
        self,
        sightings: Sightings,
        observations: Observations,
        kept: Ints,
        mentioned: Sequence[frozenset[str]],
    ) -> None:
        """Prepare.

        Args:
            sightings: The values.
            observations: Where they were seen.
            kept: [num_observations] equal in a group where the texts are equal without all that
                might be left out; 0 where nothing is left.
            mentioned: The typed tokens and the words of each action.
        """
        self._seen, self._observations = sightings, observations
        self._kept, self._mentioned = kept, mentioned
        self._following = observations.following()

    def _pairs(self, cell: Ints) -> tuple[Floats, Floats]:
        seen = self._seen
        return agreement(seen.place, cell[seen.observation], seen.value, seen.num_places)

    @cached_property
    def within(self) -> tuple[Floats, Floats]:
        """Pairs within an equivalence class that agree, and all."""
        return self._pairs(self._observations.equivalence)

    @cached_property
    def at_one_time(self) -> tuple[Floats, Floats]:
        """The same of pairs of a group with one index and two classes."""
        of = self._observations
        agreeing, pairs = self._pairs(factorise_pairs(of.group, of.index)[0])
        return agreeing - self.within[0], pairs - self.within[1]

    @cached_property
    def between(self) -> tuple[Floats, Floats]:
        """The same; of any index, where few pairs have one."""
        agreeing, pairs = self._pairs(self._observations.group)
        few = self.at_one_time[1] < 20
        return tuple(
            np.where(few, every - inside, timed)
            for every, inside, timed in zip(
                (agreeing, pairs), self.within, self.at_one_time, strict=True
            )
        )  # pyright: ignore[reportReturnType]

    @cached_property
    def differing(self) -> tuple[Ints, Ints]:
        """Classes within which values differ, and groups that have such classes."""
        seen, of = self._seen, self._observations
        among, place, cell = factorise_pairs(seen.place, of.equivalence[seen.observation])
        _, of_value, _ = factorise_pairs(among, seen.value)
        differs = np.bincount(of_value) > 1
        group_of_class = np.zeros(int(of.equivalence.max(initial=-1)) + 1, np.int64)
        group_of_class[of.equivalence] = of.group
        place, group = place[differs], group_of_class[cell[differs]]
        _, of_group, _ = factorise_pairs(place, group)
        length = seen.num_places
        return np.bincount(place, minlength=length), np.bincount(of_group, minlength=length)

    @cached_property
    def _sighting_of(self) -> tuple[Ints, Ints]:
        seen = self._seen
        key = seen.place * len(self._following) + seen.observation
        order = np.argsort(key)
        return key[order], order

    def _find(self, observation: Ints) -> Ints:
        """Return [num_sightings] the sighting at the same place in another observation, or -1."""
        keys, order = self._sighting_of
        key = self._seen.place * len(self._following) + observation
        at = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        return np.where((observation >= 0) & (keys[at] == key), order[at], -1)

    @cached_property
    def _next(self) -> tuple[Ints, Ints]:
        """Sightings with one at the next step of their trajectory, and that one."""
        after = self._find(self._following[self._seen.observation])
        here = np.flatnonzero(after >= 0)
        return here, after[here]

    def _share(self, sightings: Ints, which: Bools | Floats) -> Floats:
        place, length = self._seen.place[sightings], self._seen.num_places
        return np.bincount(place, which, length) / np.maximum(np.bincount(place, None, length), 1)

    @cached_property
    def alike(self) -> Floats:
        """Share of the pairs within a class of which the same is kept, where a value is shown."""
        of = self._observations
        size = np.bincount(of.equivalence)[of.equivalence] - 1
        cell = factorise_pairs(of.equivalence, self._kept)[0]
        equal = (np.bincount(cell)[cell] - 1) * (self._kept > 0)
        return self._shown_share(equal, size)

    @cached_property
    def loops(self) -> Floats:
        """Share of the steps from where a value is shown that lead to where the same is kept."""
        of = self._observations
        after = self._following
        counts = (after >= 0) & of.is_valid & (of.node != of.node[after])
        return self._shown_share(counts & (self._kept == self._kept[after]), counts)

    def _shown_share(self, some: Ints | Bools, every: Ints | Bools) -> Floats:
        seen = self._seen
        shown = seen.value > 0
        place, at, length = seen.place[shown], seen.observation[shown], seen.num_places
        total = np.bincount(place, every[at], length)
        return np.bincount(place, some[at], length) / np.maximum(total, 1)

    @cached_property
    def steps(self) -> Ints:
        """Steps with a value before and after."""
        return np.bincount(self._seen.place[self._next[0]], minlength=self._seen.num_places)

    @cached_property
    def changing(self) -> Floats:
        """Share of the steps at which the value changes."""
        here, there = self._next
        return self._share(here, self._seen.value[here] != self._seen.value[there])

    @cached_property
    def running(self) -> Floats:
        """Share of the steps at which the value rises, or falls, whichever it does more often."""
        change = self._change
        return np.maximum(
            self._share(self._next[0], change > 0), self._share(self._next[0], change < 0)
        )

    @cached_property
    def _change(self) -> Floats:
        here, there = self._next
        return self._seen.size[there] - self._seen.size[here]

    @cached_property
    def carried(self) -> Bools:
        """Whether the next value is nearer to the last one than that of another rollout is."""
        of, seen = self._observations, self._seen
        here, there = self._next
        partner = partners(factorise_pairs(of.group, of.index)[0])
        after = np.where(self._following >= 0, partner[self._following], -1)
        other = self._find(after[seen.observation])[here]
        here, there, other = here[other >= 0], there[other >= 0], other[other >= 0]
        own = np.abs(seen.size[there] - seen.size[here])
        others = np.abs(seen.size[other] - seen.size[here])
        place, length = seen.place[here], seen.num_places
        nearer = np.bincount(place, own < others, length)
        farther = np.bincount(place, own > others, length)
        return nearer - farther > Z * np.sqrt(nearer + farther)

    @cached_property
    def lengths(self) -> Floats:
        """Mean number of characters."""
        seen = self._seen
        length = np.array([min(map(len, names)) for names in seen.names], np.float64)
        return self._share(np.arange(len(seen.place)), length)

    @cached_property
    def used(self) -> Bools:
        """Whether actions name the values that are shown, more than those of other rollouts."""
        of, seen = self._observations, self._seen
        other = partners(of.group)
        hits, chances = np.zeros(seen.num_places), np.zeros(seen.num_places)
        words: dict[int, set[str]] = {}
        for trajectory, action in zip(of.trajectory.tolist(), of.action.tolist(), strict=True):
            if action >= 0:
                words.setdefault(trajectory, set()).update(self._mentioned[action])

        def says(observation: int, names: tuple[str, ...]) -> bool:
            action, own = int(of.action[observation]), words.get(int(of.trajectory[observation]))
            spoken = self._mentioned[action] if action >= 0 else frozenset[str]()
            return any(x in (own or () if len(x) >= LONG else spoken) for x in names)

        far = partners(factorise_pairs(of.group, of.index)[0])
        for place, observation, names in zip(
            seen.place.tolist(), seen.observation.tolist(), seen.names, strict=True
        ):
            if any(name in self._ever for name in names):
                hits[place] += says(observation, names)
                stranger = far[observation] if far[observation] >= 0 else other[observation]
                chances[place] += stranger >= 0 and says(int(stranger), names)
        return (hits > 1) & (hits > 2 * chances + 1)

    @cached_property
    def _ever(self) -> frozenset[str]:
        return frozenset().union(*self._mentioned)

    def _depends(self, label: Ints, cell: Ints) -> Bools:
        """Return whether what was done, or came of it, depends on the value within a cell."""
        seen = self._seen
        acts = self._observations.action[seen.observation] >= 0
        at = seen.observation[acts]
        of_place, size = seen.place[acts], seen.size[acts]
        return dependence(of_place, cell[at], size, label[at], seen.num_places) > Z

    @cached_property
    def decides(self) -> Bools:
        """Whether outcomes of one action from one kept text depend on the value."""
        of = self._observations
        after = np.where(self._following >= 0, self._kept[self._following] + 1, 0)
        full = factorise_pairs(of.outcome + 1, after)[0]
        state = factorise_pairs(of.group, self._kept)[0]
        choice = factorise_pairs(state, of.action + 1)[0]
        return self._depends(of.outcome, choice) | self._depends(full, choice)

    @cached_property
    def driven(self) -> Bools:
        """Whether it depends on the action how the value changes."""
        here, _ = self._next
        seen = self._seen
        place, direction = seen.place[here], np.sign(self._change).astype(np.int64)
        action = self._observations.action[seen.observation[here]].astype(np.float64)
        return dependence(place, np.zeros_like(place), action, direction + 1, seen.num_places) > Z

    @cached_property
    def guides(self) -> Bools:
        """Whether the action that is taken at one kept text and time depends on the value."""
        of = self._observations
        state = factorise_pairs(factorise_pairs(of.group, self._kept)[0], of.index)[0]
        return self._depends(of.action, state)

    @cached_property
    def tells(self) -> Bools:
        """Whether anything that is done, or its outcome, depends on the value, whatever is kept.

        What is drawn anew at each observation depends on nothing.
        """
        of = self._observations
        everywhere = np.zeros(len(of.node), np.int64)
        after_actions = factorise_pairs(of.group, of.action + 1)[0]
        return self._depends(of.action, everywhere) | self._depends(of.outcome, after_actions)


class PresenceStatistics(PlaceStatistics):
    """What it goes with that a line is there: values are 1 and 0, and no two lacks are compared."""

    def _pairs(self, cell: Ints) -> tuple[Floats, Floats]:
        agreeing, pairs = super()._pairs(cell)
        lacks = self._seen.value == 0
        place, at = self._seen.place[lacks], self._seen.observation[lacks]
        _, lacking = agreement(place, cell[at], np.zeros_like(at), self._seen.num_places)
        return agreeing - lacking, pairs - lacking
