"""The worth of lists of admissible actions, counted by hand."""

import numpy as np
import pytest

from graphcredit.credit.inputs.analogies.action_lists import Worth, judge_lists

NONE = -1

VISITS: dict[str, tuple[str, list[int], float, float, Worth]] = {
    "no list": ("AAB", [NONE, NONE, NONE], 1, 1, Worth.MISSING),
    "a list for each state": ("AAB", [1, 1, 2], 1, 0, Worth.USEFUL),
    "the same, but a visit without": ("AAAB", [1, NONE, 1, 2], 1, 0, Worth.PARTIAL),
    "one menu": ("AAB", [1, 1, 1], 1, 1, Worth.CONSTANT),
    "one menu, and a visit without": ("AABC", [1, 1, 1, NONE], 1, 1, Worth.CONSTANT),
    "a single state": ("AAA", [1, 1, 1], 1, 1, Worth.CONSTANT),
    # A sees 1 of 3 others, as B does; C sees 0 of 3, D 0 of 3.
    "a menu of two states of four": ("ABCD", [1, 1, 2, 3], 1, 1 / 6, Worth.USEFUL),
    # Three see 2 of 3 others, one sees none: exactly half is not more often than not.
    "a menu of three states of four": ("ABCD", [1, 1, 1, 2], 1, 1 / 2, Worth.USEFUL),
    # Four see 3 of 4 others.
    "a menu of four states of five": ("ABCDE", [1, 1, 1, 1, 2], 1, 3 / 5, Worth.CONSTANT),
    "a menu that is never the same": ("AABB", [1, 2, 3, 4], 0, 0, Worth.CHANGING),
    # Of A's visits two see one of two others; those of B agree: (2 / 2 + 0 + 2) / 5.
    "a menu that changes at times": ("AAABB", [1, 1, 2, 3, 3], 3 / 5, 0, Worth.CHANGING),
    # (2 / 2 + 0 + 3) / 6: exactly two thirds is a list of the state.
    "a menu that changes less often": ("AAABBB", [1, 1, 2, 3, 3, 3], 2 / 3, 0, Worth.USEFUL),
    "a state that is never visited again": ("ABC", [1, 2, 3], 1, 0, Worth.USEFUL),
}


@pytest.mark.parametrize(
    ("states", "lists", "again", "elsewhere", "worth"), VISITS.values(), ids=VISITS.keys()
)
def test_the_shares_are_those_counted_by_hand(
    states: str, lists: list[int], again: float, elsewhere: float, worth: Worth
):
    state = np.array([ord(letter) for letter in states])
    found = judge_lists(np.array(lists), state, np.zeros(len(state), np.int64), 1)
    assert (found.again[0], found.elsewhere[0]) == pytest.approx((again, elsewhere))
    assert Worth(found.worth[0]) is worth


def test_no_steps_have_no_lists():
    nothing = np.empty(0, np.int64)
    assert judge_lists(nothing, nothing, nothing, 0).worth.tolist() == []
