"""What an estimator's columns were made of besides the steps of their iteration.

The credit stage writes the names of an estimator's inputs into the configuration of its columns:
`past` is made of all iterations before, `mentions` of the entities of `er_graph/`, `analogies` of
the lists of admissible actions.
"""

from collections.abc import Mapping
from typing import Any

INPUTS_KEY = "inputs"
"""Where a configuration has the names."""

_BEFORE: Mapping[str, tuple[str, ...]] = {
    "analogy": ("analogies",),
    "sapo": ("mentions",),
    "spo3": ("past",),
}
"""The inputs in shards that do not say them: an older version of the program wrote those. Do not
add to it."""


def inputs_of(estimator: str, made_by: Any) -> tuple[str, ...]:
    """Return the names of an estimator's inputs.

    Args:
        estimator: Its name.
        made_by: What a file says of how its columns were made.
    """
    said = made_by.get(INPUTS_KEY) if isinstance(made_by, dict) else None
    return tuple(map(str, said)) if isinstance(said, list) else _BEFORE.get(estimator, ())
