"""Which parts a state keeps: a part goes if the state tells more without it.

What an agent has read is a part for each tool, and most of them matter to no outcome: they only
keep apart what is alike. The parts are chosen by the same evidence that judges all definitions, so
chance gets the same choice: each swap of `knowledge.py` chooses anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graphcredit.credit.evidence.knowledge import NUM_SWAPS, Knowledge, evidence_of, knowledge_of
from graphcredit.credit.evidence.visits import Rollouts, swaps
from graphcredit.credit.steps.arrays import Bools, Ints

MOST_PARTS = 16
"""Parts that may go: those that keep most states apart. The others stay."""

MOST_STEPS = 10_000
"""Steps by which parts are chosen: those of the first groups."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """States made of a base and parts."""

    base: Ints
    """[num_steps]; no two groups share one."""
    of: Mapping[str, Ints]
    """[num_steps] of each part."""

    def node(self, kept: Sequence[str]) -> Ints:
        """Return the nodes of states with some of the parts."""
        node = np.unique(self.base, return_inverse=True)[1]
        for name in kept:
            part = self.of[name]
            node = np.unique(node * (int(part.max(initial=0)) + 1) + part, return_inverse=True)[1]
        return node

    def at(self, places: Ints | Bools) -> "Parts":
        """Return the same of other steps."""
        return Parts(
            base=self.base[places], of={name: part[places] for name, part in self.of.items()}
        )


def kept_parts(rollouts: Rollouts, parts: Parts) -> tuple[str, ...]:
    """Return the parts that a state keeps.

    It starts with all. The part without which there is most evidence goes, as long as there is more
    than with it.

    Args:
        rollouts: Rollouts of groups with different outcomes, one group after the other.
        parts: The parts of all steps.
    """
    rollouts, parts = _first_groups(rollouts, parts)
    apart = {name: int(parts.node([name]).max(initial=0)) for name in parts.of}
    may_go = sorted(apart, key=lambda name: -apart[name])[:MOST_PARTS]
    kept, now = list(parts.of), evidence_of(rollouts, parts.node(list(parts.of)))
    while may_go:
        less = {name: [other for other in kept if other != name] for name in may_go}
        told = {name: evidence_of(rollouts, parts.node(less[name])) for name in may_go}
        worst = max(may_go, key=told.__getitem__)
        if told[worst] <= now:
            break
        now, kept = told[worst], less[worst]
        may_go.remove(worst)
    return tuple(kept)


def _first_groups(rollouts: Rollouts, parts: Parts) -> tuple[Rollouts, Parts]:
    group = rollouts.group[rollouts.of_step]
    if len(group) <= MOST_STEPS:
        return rollouts, parts
    num_groups = max(1, int(group[MOST_STEPS]))
    is_first = rollouts.group < num_groups
    first = Rollouts(
        group=rollouts.group[is_first],
        length=rollouts.length[is_first],
        outcome=rollouts.outcome[is_first],
    )
    return first, parts.at(group < num_groups)


def knowledge_of_parts(rollouts: Rollouts, parts: Parts) -> tuple[tuple[str, ...], Knowledge]:
    """Return the parts that a state keeps, and what it then tells.

    Args:
        rollouts: Rollouts of groups with different outcomes, one group after the other.
        parts: The parts of all steps.
    """
    kept = kept_parts(rollouts, parts)
    by_chance: list[Ints] = []
    for places in swaps(rollouts, NUM_SWAPS):
        anew = parts.at(places)
        by_chance.append(anew.node(kept_parts(rollouts, anew)))
    return kept, knowledge_of(rollouts, parts.node(kept), by_chance)
