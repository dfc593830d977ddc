"""What each definition of a state tells, and what to make of it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphcredit.credit.evidence.knowledge import Estimate, Knowledge


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidenceReport:
    """What each definition of a state tells, the one with the most evidence first."""

    num_groups: int
    """Judged groups."""
    num_mixed: int
    """Those with different outcomes: the others teach nothing."""
    num_rollouts: int
    """Rollouts of the mixed groups."""
    num_steps: int
    """Their steps."""
    is_whole: bool
    """Whether all groups of the store were judged."""
    knowledge: dict[str, Knowledge]
    """Definition to what it tells."""

    @property
    def best(self) -> str | None:
        """The definition with the most evidence, if that is beyond chance."""
        name = next(iter(self.knowledge), None)
        return name if name and self.knowledge[name].beyond_chance().is_positive else None

    @property
    def chosen(self) -> Estimate | None:
        """Evidence beyond chance of the best on one half of the groups, seen on the other half.

        It is the mean of both ways. None with fewer than four mixed groups.
        """
        if self.num_mixed < 4:
            return None
        even = np.arange(self.num_mixed) % 2 == 0
        seen = [self._chosen_on(half).beyond_chance(~half) for half in (even, ~even)]
        error = sum(each.error**2 for each in seen) ** 0.5 / 2
        return Estimate(value=sum(each.value for each in seen) / 2, error=error)

    def _chosen_on(self, groups: Any) -> Knowledge:
        return max(self.knowledge.values(), key=lambda each: each.evidence(groups).value)

    @property
    def groups_needed(self) -> int | None:
        """About how many mixed groups would show evidence; None if more of them would not."""
        if self.best or not self.knowledge or self.num_mixed < 2:
            return None
        seen = next(iter(self.knowledge.values())).beyond_chance()
        if seen.value <= 0:
            return None
        return int(np.ceil(self.num_mixed * (2 * seen.error / seen.value) ** 2))

    def as_json(self) -> dict[str, Any]:
        """Return everything, for programs."""
        return {
            "num_groups": self.num_groups,
            "num_mixed": self.num_mixed,
            "num_rollouts": self.num_rollouts,
            "num_steps": self.num_steps,
            "is_whole": self.is_whole,
            "best": self.best,
            "chosen": _as_json(self.chosen),
            "groups_needed": self.groups_needed,
            "definitions": {
                name: {
                    "num_states": each.num_states,
                    "company": each.company,
                    "information": _as_json(each.information()),
                    "information_by_part": list(each.by_part),
                    "guidance": _as_json(each.guidance()),
                    "evidence": _as_json(each.evidence()),
                    "beyond_chance": _as_json(each.beyond_chance()),
                }
                for name, each in self.knowledge.items()
            },
        }


def _as_json(estimate: Estimate | None) -> dict[str, float | None] | None:
    if estimate is None:
        return None
    error = estimate.error if np.isfinite(estimate.error) else None
    return {"value": estimate.value, "error": error}
