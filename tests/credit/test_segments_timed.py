"""What comes and goes with the time, and dialects: against slow references, and where they end."""

import random
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.credit.merging.segments.counts.timed import timed
from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.noise.idle.claims import Claims
from graphcredit.credit.merging.segments.noise.idle.dialects import as_dialects
from graphcredit.credit.merging.segments.noise.idle.rules import IdleRules
from graphcredit.credit.merging.segments.text.parsed import Parsed

_GROUPS, _ROLLOUTS, _LOOKS = 5, 5, 6


def visits_in(rng: random.Random) -> Visits:
    """Return looks of groups of rollouts, some of which are certainly at one state."""
    place = np.arange(_GROUPS * _ROLLOUTS * _LOOKS)
    trajectory, index = place // _LOOKS, place % _LOOKS
    group = trajectory // _ROLLOUTS
    certain = np.array([rng.randrange(3) for _ in place]) + 3 * (group * _LOOKS + index)
    return Visits(
        node=place,
        certain=certain,
        walked=certain,
        group=group,
        index=index,
        trajectory=trajectory,
        taken=np.where(index == _LOOKS - 1, -1, 0),
        is_valid=index < _LOOKS - 1,
        outcome=np.zeros_like(place),
        succeeds=np.zeros(len(place), np.bool_),
    )


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.01, 0.1, 0.5]))
def test_what_the_time_decides_about_is_what_a_slow_one_finds(seed: int, chance: float):
    rng = random.Random(seed)
    visits = visits_in(rng)
    times = {rng.randrange(_LOOKS) for _ in range(2)}
    shows = [
        [(int(time) in times) != (rng.random() < chance) for time in visits.index],
        [rng.random() < 0.5 for _ in visits.index],
    ]
    pairs = [(visit, code) for code, own in enumerate(shows) for visit in np.flatnonzero(own)]
    visit, segment = np.array(sorted(pairs), np.int64).reshape(-1, 2).T
    expected = [code for code, own in enumerate(shows) if any(own) and _is_timed(visits, own)]
    assert timed(visits, visit, segment).tolist() == expected


def _is_timed(visits: Visits, shown: list[bool]) -> bool:
    both = one = 0
    expected = 0.0
    groups = set[int]()
    for group in range(_GROUPS):
        own = np.flatnonzero(visits.group == group).tolist()
        every = list(combinations(own, 2))
        rate = sum(shown[a] != shown[b] for a, b in every) / len(every)
        for a, b in every:
            if visits.index[a] != visits.index[b] or visits.certain[a] == visits.certain[b]:
                continue
            both += shown[a] and shown[b]
            one += shown[a] != shown[b]
            expected += rate
            if shown[a] and shown[b]:
                groups.add(group)
    return both >= 20 and expected >= 20 and len(groups) >= 4 and one <= 0.02 * expected


def _claims(parsed: Parsed, words: list[tuple[str, ...]]) -> Claims[tuple[str, ...]]:
    return Claims(
        things=words,
        of_segment=[
            [(key, token) for key, own in enumerate(words) for token in part.tokens if token in own]
            for part in parsed.segments
        ],
        without=lambda chosen: IdleRules(),
    )


def test_claims_whose_values_go_together_in_every_rollout_are_one():
    rng = random.Random(0)
    visits = visits_in(rng)
    is_german = np.array([rng.random() < 0.5 for _ in range(_GROUPS * _ROLLOUTS)])
    mood = np.array([rng.choice(("glad", "sad")) for _ in is_german])
    texts = [
        f"{'du' if is_german[t] else 'you'} {'dort' if is_german[t] else 'there'} {mood[t]}"
        for t in visits.trajectory
    ]
    parsed = Parsed.of(texts)
    kinds = [
        _claims(parsed, [("du", "you"), ("glad", "sad")]),
        _claims(parsed, [("dort", "there")]),
        _claims(parsed, [("glad", "sad")]),
    ]
    found = as_dialects(kinds[:2], parsed, visits, unsure=1)
    assert found.things == [{0, 2}, {1}]
    assert all(len(own) == 2 for own in found.of_segment)
    # What goes with nothing else counts only if it is sure.
    alone = as_dialects([kinds[1], kinds[2]], parsed, visits, unsure=1)
    assert alone.things == [{0}]
