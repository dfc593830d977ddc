"""The worth of lists of admissible actions: whether they tell the states of a group apart.

An action that is on a list and was not taken is something to imagine only if the list is that of
the state. Many programs log nothing, or one menu for all states, or a menu that changes by itself.
Two shares say so, without knowing any of them:

    again      how often another visit of a visited state shows the same list
    elsewhere  how often a visit of another state of the group shows the same list
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from graphcredit.credit.merging.admissible import UNKNOWN
from graphcredit.credit.steps.arrays import Bools, Floats, Ints, factorise, factorise_pairs

MOST_ELSEWHERE = 1 / 2
"""Above it, a list is one of many states: more often than not it does not tell them apart."""

LEAST_AGAIN = 2 / 3
"""Below it, a state does not have a list: it comes with the step, or with something that the state
leaves out."""

_ROUNDING = 1e-9
"""Sums of ratios that are equal differ by less."""


class Worth(IntEnum):
    """What the lists of a group are worth; those above 1 say nothing of its states."""

    USEFUL = 0
    PARTIAL = 1
    MISSING = 2
    CONSTANT = 3
    CHANGING = 4


MEANING: dict[Worth, str] = {
    Worth.USEFUL: "lists of admissible actions that tell their states apart",
    Worth.PARTIAL: "lists of admissible actions on some steps only",
    Worth.MISSING: "no lists of admissible actions",
    Worth.CONSTANT: "the same list of admissible actions in most of their states",
    Worth.CHANGING: "lists of admissible actions that change between visits of one state",
}
"""What groups have: the end of "3 of 16 groups have …"."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionLists:
    """What the lists of each group are worth, and why."""

    worth: Ints
    """[num_groups] a `Worth`."""
    again: Floats
    """[num_groups] see above; 1 where no state was visited twice."""
    elsewhere: Floats
    """[num_groups] see above; 1 where a single state has lists: nothing is told apart."""

    @property
    def is_useful(self) -> Bools:
        """[num_groups] whether what is on a list and was not taken means anything."""
        return self.worth <= Worth.PARTIAL

    def count(self) -> dict[str, int]:
        """Return the number of groups by the lower-case name of their worth, zeros left out."""
        counts = np.bincount(self.worth, minlength=len(Worth)).tolist()
        return {worth.name.lower(): counts[worth] for worth in Worth if counts[worth]}


def judge_lists(action_list: Ints, state: Ints, group: Ints, num_groups: int) -> ActionLists:
    """Judge the lists of admissible actions of each group.

    Args:
        action_list: [n] equal numbers for equal sets of actions, `UNKNOWN` where there is no list.
        state: [n] where the list was shown; a state belongs to one group.
        group: [n] its group.
        num_groups: Groups.
    """
    is_known = action_list != UNKNOWN
    num_steps = np.bincount(group, minlength=num_groups)
    num_listed = np.bincount(group[is_known], minlength=num_groups)
    again, elsewhere = _shares(action_list[is_known], state[is_known], group[is_known], num_listed)
    kinds = {
        Worth.MISSING: num_listed == 0,
        Worth.CONSTANT: elsewhere > MOST_ELSEWHERE + _ROUNDING,
        Worth.CHANGING: again < LEAST_AGAIN - _ROUNDING,
        Worth.PARTIAL: num_listed < num_steps,
    }
    return ActionLists(
        worth=np.select(list(kinds.values()), list(kinds), Worth.USEFUL).astype(np.int64),
        again=again,
        elsewhere=elsewhere,
    )


def _shares(action_list: Ints, state: Ints, group: Ints, num_listed: Ints) -> tuple[Floats, Floats]:
    """Return `again` and `elsewhere` of each group, from the visits that show a list."""
    list_code, _ = factorise(action_list)
    state_code, states = factorise(state)
    pair, pair_state, pair_list = factorise_pairs(state_code, list_code)
    group_of_state = np.zeros(len(states), np.int64)
    group_of_state[state_code] = group
    pair_group = group_of_state[pair_state]
    visits = np.bincount(pair, minlength=len(pair_state)).astype(np.float64)
    of_state = np.bincount(state_code, minlength=len(states)).astype(np.float64)[pair_state]
    in_group, _, _ = factorise_pairs(pair_group, pair_list)
    of_list = np.bincount(in_group, visits).astype(np.float64)[in_group]

    def share(same: Floats, others: Floats) -> Floats:
        """Return the mean over visits of how many of the others are the same; 1 for no others."""
        is_any = others > 0
        owner, weight = pair_group[is_any], visits[is_any]
        sums = np.bincount(owner, weight * same[is_any] / others[is_any], len(num_listed))
        weights = np.bincount(owner, weight, len(num_listed))
        return np.divide(sums, weights, out=np.ones(len(num_listed)), where=weights > 0)

    return (
        share(visits - 1, of_state - 1),
        share(of_list - visits, num_listed[pair_group] - of_state),
    )
