"""What the configuration of credit columns says of the estimator that made them.

The credit stage writes it from the estimator's row, so that readers of the store need not know any
estimator by name. Shards of an older version of the program do not say it: for them, and for those
of other programs, there are two tables here. Nothing is to be added to them.
"""

from collections.abc import Mapping
from typing import Any

INPUTS_KEY = "inputs"
"""Where a configuration has the names of what the columns were made of besides the steps of their
iteration: `past` is all iterations before, `mentions` the entities of `er_graph/`, `analogies` the
lists of admissible actions."""

BALANCED_KEY = "balanced"
"""Where it has which parts have mean 0, and over what: `trajectories` are those of a group, and all
steps of one have one value; `states` are the steps that start from one state; `group` is all steps
of a group."""

BALANCES = ("trajectories", "states", "group")
"""What there is; a reader passes over any other word."""

_INPUTS: Mapping[str, tuple[str, ...]] = {
    "analogy": ("analogies",),
    "sapo": ("mentions",),
    "spo3": ("past",),
}

_EPISODE = {"episode_advantage": "trajectories"}
_BALANCED: Mapping[str, Mapping[str, str]] = {
    "grpo": {"advantage": "trajectories"} | _EPISODE,
    "rloo": {"advantage": "trajectories"} | _EPISODE,
    "gigpo": {"step_advantage": "states"} | _EPISODE,
    "rewardflow": {"step_advantage": "states"} | _EPISODE,
    "graphgpo": {"step_advantage": "states"} | _EPISODE,
    "spo3": {"step_advantage": "states"},
    "sapo": _EPISODE,
    "g2po": {"step_advantage": "group"} | _EPISODE,
    "analogy": {"step_advantage": "group"},
}


def inputs_of(estimator: str, made_by: Any) -> tuple[str, ...]:
    """Return the names of an estimator's inputs.

    Args:
        estimator: Its name.
        made_by: What a file says of how its columns were made.
    """
    said = made_by.get(INPUTS_KEY) if isinstance(made_by, dict) else None
    return tuple(map(str, said)) if isinstance(said, list) else _INPUTS.get(estimator, ())


def balanced_of(estimator: str, made_by: Any) -> Mapping[str, str]:
    """Return the parts of an estimator that have mean 0, and over what.

    Args:
        estimator: Its name.
        made_by: What a file says of how its columns were made.
    """
    said = made_by.get(BALANCED_KEY) if isinstance(made_by, dict) else None
    return said if isinstance(said, dict) else _BALANCED.get(estimator, {})
