"""Conditions under which credit is judged: one base, and each axis varied from it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from benchmarks.noise.advertised import STRENGTHS
from graphcredit.credit.merging.table import MergeSettings

EPSILONS: tuple[float, ...] = (0.5, 0.7, 0.85, 0.95)
"""Share of random actions of the policies `oracle:EPSILON`."""
GROUP_SIZES: tuple[int, ...] = (4, 8, 16)
NOISES: tuple[str, ...] = ("none", *(noise.name for noise in STRENGTHS))
"""Strengths of the noise of benchmarks/noise/advertised.py in the texts of states."""
LISTS: tuple[str, ...] = ("exact", "none", "constant")
"""What is logged of the admissible actions: their list, nothing, or in every state the same."""
WINDOWS: tuple[int, ...] = (1, 3, 5)
"""Numbers of iterations in the graph, including the judged one."""

_RULES = ("whitespace", "casefold")

MERGES: Mapping[str, MergeSettings] = MappingProxyType(
    {
        "exact": MergeSettings(),
        "segments": MergeSettings(merge="segments"),
        "ngram 0.8": MergeSettings(merge="embedding", threshold=0.8, normalise=_RULES),
    }
)
"""Ways to merge texts into states."""

OPTIONS: tuple[str, ...] = (
    "graphgpo.distance_discount=0.2",
    "graphgpo.distance_discount=0.5",
    "graphgpo.distance_discount=0.8",
    "rewardflow.gamma=0.7",
    "rewardflow.gamma=0.95",
    "gigpo.gamma=0.8",
    "gigpo.gamma=1.0",
    "hgpo.history=0",
    "spo3.alpha=50",
)
"""Other values of the options that matter most, to test whether a default explains a result."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """Selects the judged steps, and how their credit is computed."""

    environment: str = "textworld"
    """Environment of the games: `textworld`, `search`, or one of worlds.py."""
    epsilon: float = 0.85
    """Share of random actions of the policy that played."""
    group_size: int = 8
    """Rollouts of each game in the judged iteration; the first ones of the log."""
    noise: str = "none"
    """One of `NOISES`."""
    merge: str = "exact"
    """One of `MERGES`."""
    window: int = 1
    """Iterations in the graph; one of `WINDOWS`."""
    lists: str = "exact"
    """One of `LISTS`."""
    option: str = ""
    """`ESTIMATOR.OPTION=VALUE`, one of `OPTIONS`, to judge that estimator alone; or empty."""

    @property
    def name(self) -> str:
        """Name of the condition and of its file, which has every setting."""
        parts = (
            self.environment,
            f"epsilon{self.epsilon:g}",
            f"group{self.group_size}",
            self.noise,
            self.merge.replace(" ", ""),
            f"window{self.window}",
            "" if self.lists == "exact" else f"lists-{self.lists}",
            self.option,
        )
        return "-".join(part for part in parts if part)

    @property
    def run_id(self) -> str:
        """Run of the log that has its steps."""
        return f"{self.environment}-oracle-{self.epsilon:g}"


BASE = Condition()


def conditions() -> list[Condition]:
    """Return all conditions, the base first, each once."""
    found = [
        BASE,
        *(Condition(epsilon=e, group_size=size) for e in EPSILONS for size in GROUP_SIZES),
        *(replace(BASE, noise=noise, merge=merge) for noise in NOISES for merge in MERGES),
        *(replace(BASE, window=window) for window in WINDOWS),
        *(replace(BASE, option=option) for option in OPTIONS),
        *(Condition(environment="search", epsilon=e) for e in EPSILONS),
    ]
    return list(dict.fromkeys(found))
