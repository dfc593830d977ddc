"""Whether an action that was called invalid leaves the state, after all.

Most environments do nothing then. Some take another action in its place, or wait; then two visits
are not certainly of one state. So it is asked how alike the words are before and after such an
action: as alike as looks at one state after the same actions, or as before and after a valid one.
What is nearer holds. Without such looks, words must hardly differ at all.
"""

import re
from collections.abc import Sequence

import numpy as np

from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.steps.arrays import Bools, Ints

_WORD = re.compile(r"\w+")


def invalid_actions_move(texts: Sequence[str], visits: Visits) -> bool:
    """Return whether the texts before and after invalid actions are those of two states.

    Args:
        texts: The text of each node.
        visits: All visits of whole groups.
    """
    order = np.lexsort((visits.index, visits.trajectory))
    # What is read first has an introduction that is never seen again.
    steps = _neighbours(order, visits.trajectory) & (visits.index[order[:-1]] > 0)
    is_invalid = visits.action[order[:-1]] < 0
    if not (steps & is_invalid).any():
        return False
    by_class = np.lexsort((visits.index, visits.walked))
    alike = _Alike(texts, visits.node)
    invalid = alike.mean(order, steps & is_invalid)
    valid = alike.mean(order, steps & ~is_invalid, otherwise=0.0)
    one_state = alike.mean(by_class, _neighbours(by_class, visits.walked), otherwise=1.0)
    return invalid < (one_state + valid) / 2


def _neighbours(order: Ints, owner: Ints) -> Bools:
    """Return [n - 1] whether a visit and the next one in an order have one owner."""
    found: Bools = owner[order[1:]] == owner[order[:-1]]
    return found


class _Alike:
    """Compares the words of visits."""

    def __init__(self, texts: Sequence[str], node: Ints) -> None:
        self._node = node
        self._words = [frozenset(_WORD.findall(text.casefold())) for text in texts]

    def mean(self, order: Ints, chosen: Bools, otherwise: float = 0.0) -> float:
        """Return the mean share of common words over chosen visits and the ones after them."""
        first = np.flatnonzero(chosen)
        if not len(first):
            return otherwise
        one, other = (self._node[order[at]].tolist() for at in (first, first + 1))
        return float(np.mean(list(map(self._share, one, other))))

    def _share(self, one: int, other: int) -> float:
        either = self._words[one] | self._words[other]
        return len(self._words[one] & self._words[other]) / len(either) if either else 1.0
