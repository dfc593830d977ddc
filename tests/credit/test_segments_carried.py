"""What is carried from one look to the next is no noise."""

import random
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.credit_truth.judge import Played, Unit
from experiments.credit_truth.rollouts import step_table
from graphcredit.credit.iteration.assemble import assemble
from graphcredit.credit.merging.merger import open_merger
from graphcredit.credit.merging.segments.counts import carried
from graphcredit.credit.merging.segments.counts.changes import Changes
from graphcredit.credit.merging.segments.counts.scale import Scale
from graphcredit.credit.merging.segments.text.tokens import is_layout, kind_of, tokenise
from graphcredit.credit.merging.table import MergeSettings


def changes(now: list[str], then: list[str], time: list[int]) -> Changes:
    """Return changes of one key."""
    values = sorted({*now, *then})
    code = {value: number for number, value in enumerate(values)}
    zeros = np.zeros(len(now), np.int64)
    return Changes(
        key=zeros,
        place=zeros,
        action=zeros,
        time=np.array(time, np.int64),
        now=np.array([code[value] for value in now], np.int64),
        then=np.array([code[value] for value in then], np.int64),
        scale=Scale.of([(value,) for value in values]),
    )


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=4, max_size=6))
def test_excess_and_variance_are_those_over_all_permutations(pairs: list[tuple[int, int]]):
    now, then = [one for one, _ in pairs], [two for _, two in pairs]
    found = changes(list(map(str, now)), list(map(str, then)), [0] * len(pairs))
    stratum = np.zeros(len(pairs), np.int64)

    def covariation(order: Any) -> float:
        rank = found.scale.rank
        x, y = rank[found.now], rank[found.then][list(order)]
        return float(((x - x.mean()) * (y - y.mean())).sum())

    def agreement(order: Any) -> int:
        return sum(
            now[i] == now[j] and then[order[i]] == then[order[j]]
            for i in range(len(now))
            for j in range(len(now))
            if i != j
        )

    orders = list(permutations(range(len(pairs))))
    for statistic, slow in ((carried._moving, covariation), (carried._agreeing, agreement)):
        values = [slow(order) for order in orders]
        excess, variance = statistic(found, stratum, 1)
        assert excess[0] == pytest.approx(slow(range(len(pairs))) - np.mean(values), abs=1e-9)
        assert variance[0] == pytest.approx(np.var(values), abs=1e-9)


def walk(rng: random.Random, step: Any) -> Changes:
    """Return the changes of 8 trajectories in 6 groups, from a start of 5 and by some step."""
    now, then, time = list[str](), list[str](), list[int]()
    for group in range(6):
        places = [5] * 8
        for index in range(10):
            after = [step(rng, place, index) for place in places]
            now += map(str, places)
            then += map(str, after)
            time += [group * 10 + index] * 8
            places = after
    return changes(now, then, time)


@pytest.mark.parametrize(
    ("step", "is_carried"),
    [
        (lambda rng, place, index: (place + rng.choice((-1, 0, 1))) % 9, True),
        (lambda rng, place, index: place if index else rng.randrange(9), True),
        (lambda rng, place, index: rng.randrange(9), False),
        (lambda rng, place, index: 5 * index + rng.randrange(9), False),
        # A clock depends on what it showed, and is no part of the state.
        (lambda rng, place, index: place + rng.randrange(1, 9), False),
    ],
    ids=["walks", "dealt", "drawn", "with time", "clock"],
)
def test_what_walks_about_or_was_dealt_is_carried(step: Any, is_carried: bool):
    rng = random.Random(1)
    assert carried.depend_on_the_last(walk(rng, step), 1).tolist() == [is_carried]


def test_words_are_carried_without_an_order():
    rooms = ["hall", "bath", "attic", "cellar", "loft"]
    found = walk(random.Random(2), lambda rng, place, index: (place + rng.choice((0, 1))) % 5)
    named = changes(
        [rooms[int(value) % 5] for value in found.scale.rank[found.now]],
        [rooms[int(value) % 5] for value in found.scale.rank[found.then]],
        found.time.tolist(),
    )
    assert carried.depend_on_the_last(named, 1).tolist() == [True]


def test_numbers_are_ordered_by_size_and_times_by_their_parts():
    values = ["10:05", "9:50", "-3", "2", "1,200", "700.5", "1.2.10", "1.2.9", "hall"]
    rank = Scale.of([(value,) for value in values]).rank
    order = [values[number] for number in np.argsort(rank)]
    assert order == ["-3", "2", "700.5", "1,200", "1.2.9", "1.2.10", "9:50", "10:05", "hall"]


def test_a_sign_belongs_to_its_number():
    assert tokenise("code ??, -1 dialled") == ("code", "?", "?", ",", "-1", "dialled")
    assert tokenise("row 3-5") == ("row", "3", "-", "5")
    assert tokenise("- 3 apples")[0] == "-"
    assert (kind_of("-1"), kind_of("-1.5"), is_layout("-1")) == ("integer", "decimal", False)


@pytest.mark.parametrize("world", ["rabbit", "safe"])
def test_what_moves_or_is_dealt_at_random_stays_a_part_of_the_state(world: str):
    played = Played.of(
        Unit(world=world, policy="quarter", seed=0, num_groups=16, estimators=("grpo",))
    )
    steps = step_table(played.world, played.rollouts, group_size=8, lists="none")
    merger = open_merger(MergeSettings(merge="segments")).learn([steps])
    exact, found = assemble(steps), assemble(steps, merger=merger)
    assert found.merged.num_states == exact.merged.num_states
