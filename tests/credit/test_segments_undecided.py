"""Pairs of states that `segments` keeps apart for want of evidence."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.merging.segments.undecided import count_undecided

A, B, C, D = "One is here", "Two are here", "Three are here", "Four are here"


def count(texts: list[list[str]], place: list[int], known: tuple[str, ...] = ()) -> int:
    parsed = Parsed.of(["\n".join(own) for own in texts])
    is_known = [" ".join(part.tokens) in known for part in parsed.segments]
    return count_undecided(parsed, np.array(place, np.int64), np.array(is_known, bool))


def test_states_that_differ_in_one_segment_are_undecided():
    # Exchanged: A B and A C. Added: A and each of the two. D is far from all.
    assert count([[A, B], [A, C], [A], [B, C, D]], [0, 0, 0, 0]) == 3


def test_order_does_not_matter_and_other_places_do():
    assert count([[A, B], [C, A]], [0, 0]) == 1
    assert count([[A, B], [A, C]], [0, 1]) == 0


def test_states_of_one_segment_have_nothing_in_common():
    assert count([[A], [B], [C]], [0, 0, 0]) == 0


def test_what_is_known_is_decided():
    texts = [[A, B], [A, C]]
    known = tuple(" ".join(part.tokens) for part in Parsed.of([B]).segments)
    assert count(texts, [0, 0], known) == 0


@given(
    st.lists(
        st.tuples(st.sets(st.sampled_from([A, B, C, D]), min_size=1), st.integers(0, 1)),
        max_size=8,
        unique_by=lambda own: (frozenset(own[0]), own[1]),
    )
)
def test_it_counts_what_comparing_each_pair_counts(states: list[tuple[set[str], int]]):
    slow = sum(
        place == other and max(len(one - two), len(two - one)) == 1 and bool(one & two)
        for number, (one, place) in enumerate(states)
        for two, other in states[:number]
    )
    assert count([sorted(own) for own, _ in states], [place for _, place in states]) == slow
