"""Explanations of an estimator's credit: what was compared, among which others, in what unit.

The credit stage writes it into the configuration of the columns, so that readers of the store need
not know any estimator by name. Credit of an older version, or of another program, may not say it.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

EXPLAINED_KEY = "explained"
"""Where a configuration has it."""

Among: TypeAlias = Literal[
    "trajectories", "others", "states", "edges", "past", "trajectory", "group", "nobody"
]
"""Whom a value is compared with: the trajectories of the group, or those other than its own; the
steps from the same state, each transition from it once, or the steps with the same recent states;
the steps of its trajectory; all steps of the group. `nobody`: the value stands for itself."""


class Compared(BaseModel):
    """One comparison that a part of an advantage is made of."""

    model_config = ConfigDict(frozen=True)

    what: str
    """What is compared, as a noun phrase."""
    among: Among
    unit: str = ""
    """Unit of the difference, such as standard deviations; empty for that of what is compared."""


class Explanation(BaseModel):
    """How all parts of an estimator's advantage came to be."""

    model_config = ConfigDict(frozen=True)

    total: str
    """What the advantage is made of, as a noun phrase; empty if it is itself among the parts."""
    parts: Mapping[str, tuple[Compared, ...]]
    """Part to its comparisons, which are added."""


def explanation_of(made_by: Any) -> Explanation | None:
    """Return how credit explains itself; None where it does not, or not in these words.

    Args:
        made_by: What a file says of how its columns were made.
    """
    said = made_by.get(EXPLAINED_KEY) if isinstance(made_by, dict) else None
    try:
        return Explanation.model_validate(said)
    except ValidationError:
        return None
