"""What each definition of a state tells, and what to make of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphcredit.credit.evidence.knowledge import Estimate, Groups, Knowledge
from graphcredit.store.plural import counted
from graphcredit.store.text_table import Report, Rows

TIE = 0.25
"""Standard errors by which a definition may have less evidence than another and still be as good.
Chosen on the design worlds of `experiments/credit_truth`."""


def recommended(knowledge: Mapping[str, Knowledge], groups: Groups = slice(None)) -> str:
    """Return the definition with the most states of those that are as good as the best.

    Uniting what differs costs more than keeping apart what is alike, the more so the more groups a
    batch has.
    """
    best = max(knowledge.values(), key=lambda each: each.evidence(groups).value)

    def is_as_good(each: Knowledge) -> bool:
        less = best.more_than(each, groups)
        return each is best or less.value <= TIE * less.error < np.inf

    good = {name: each for name, each in knowledge.items() if is_as_good(each)}
    return max(good, key=lambda name: good[name].num_states)


def best_of(knowledge: Mapping[str, Knowledge], groups: Groups = slice(None)) -> str | None:
    """Return the recommended definition, if it is beyond chance; else that with the most evidence.

    None if neither is beyond chance.
    """
    most = max(knowledge, key=lambda name: knowledge[name].evidence(groups).value)
    for name in (recommended(knowledge, groups), most):
        if knowledge[name].beyond_chance(groups).is_positive:
            return name
    return None


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class EvidenceReport(Report):
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
    default: str | None
    """The fixed definition to take for a graph; None if there is no such one."""
    knowledge: dict[str, Knowledge]
    """Definition to what it tells."""

    @property
    def best(self) -> str | None:
        """The recommended definition; see `best_of`."""
        return best_of(self.knowledge)

    @property
    def groups_needed(self) -> int | None:
        """About how many mixed groups would show evidence; None if more of them would not."""
        if self.best or not self.knowledge or self.num_mixed < 2:
            return None
        seen = next(iter(self.knowledge.values())).beyond_chance()
        if seen.value <= 0:
            return None
        return int(np.ceil(self.num_mixed * (2 * seen.error / seen.value) ** 2))

    def against(self, default: str, used: str) -> str:
        """Return what the states in use tell, and what the default would."""
        return (
            f"{used} is used, with evidence {self.knowledge[used].evidence()}; "
            f"{default}, what the agent saw, has {self.knowledge[default].evidence()}"
        )

    def headline(self) -> str:
        """Return how much was judged."""
        part = "" if self.is_whole else ", the first of the store"
        return (
            f"{counted(self.num_groups, 'group')}{part}; {self.num_mixed:,} of them with different "
            f"outcomes: {counted(self.num_rollouts, 'rollout')}, {counted(self.num_steps, 'step')}"
        )

    def table(self) -> tuple[Sequence[str], Rows]:
        """Return what each definition tells."""
        rows: list[list[str]] = []
        for name, each in self.knowledge.items():
            told = (each.information(), each.guidance(), each.evidence())
            rows.append([name, f"{each.company:.0%}", *map(str, told)])
        return ("definition", "company", "information", "guidance", "evidence"), rows

    def as_json(self) -> dict[str, Any]:
        """Return everything, for programs."""
        return {
            "num_groups": self.num_groups,
            "num_mixed": self.num_mixed,
            "num_rollouts": self.num_rollouts,
            "num_steps": self.num_steps,
            "is_whole": self.is_whole,
            "best": self.best,
            "default": self.default,
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


def _as_json(estimate: Estimate) -> dict[str, float | None]:
    error = estimate.error if np.isfinite(estimate.error) else None
    return {"value": estimate.value, "error": error}
