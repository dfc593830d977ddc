"""Which version of an estimator's formula made its columns, and which counts are in `history/`.

Where a formula comes to give other numbers, its version goes up here. What an older one made stays
where it is: it is recognised by what its file says, and nobody takes it for today's.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from graphcredit.store.errors import SchemaError
from graphcredit.store.schema import CONFIGURATION_KEY

FORMULA_KEY = "formula"
"""Where a configuration has the version; without it that is 1."""

_VERSIONS: Mapping[str, int] = {"analogy": 2, "reach": 2, "spo3": 2}
"""Version of an estimator's formula; 1 of those that are not listed.

analogy: the last version of it (see `SUCCESSORS`); 1 imagined from any list.
reach: 2 has the progress of a step as its step advantage, and another measure of what is new.
spo3: 2 counts the states in which trajectories acted. 1 also counted what a last step led to.
"""

SUCCESSORS: Mapping[str, str] = {"analogy": "reach"}
"""Estimators that this program no longer has, and which one has taken the place of each. Their
columns stay in old stores, and are read like those of any other program."""

HISTORY_FORMULA = 2
"""Version of the counts in `history/`; an estimator made of them gets a new version with them."""


def successor(estimator: str) -> str:
    """Return the estimator to run where one is asked for: itself, or what took its place."""
    return SUCCESSORS.get(estimator, estimator)


def formula_of(estimator: str) -> int:
    """Return the version of an estimator's formula that this program computes."""
    return _VERSIONS.get(estimator, 1)


def is_of_other_formula(estimator: str, made_by: Any) -> bool:
    """Return whether credit or counts were made by another version of an estimator's formula.

    Args:
        estimator: Its name.
        made_by: What their file says of how they were made. Anything but an object, by another
            program, says nothing of formulas.
    """
    return isinstance(made_by, dict) and made_by.get(FORMULA_KEY, 1) != formula_of(estimator)


def configuration_of(schema: pa.Schema) -> dict[str, Any]:
    """Return what a file says of how it was made; nothing where it does not say it in JSON."""
    try:
        found = json.loads((schema.metadata or {}).get(CONFIGURATION_KEY, b"{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def stated_configuration(schema: pa.Schema, path: Path) -> dict[str, Any]:
    """Return what a file says of how it was made.

    Raises:
        SchemaError: It does not say it as a JSON object.
    """
    text = (schema.metadata or {}).get(CONFIGURATION_KEY, b"{}")
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if isinstance(found, dict):
        return found
    raise SchemaError(
        f"{path} must say in its metadata how its columns were made, as a JSON object: found "
        f"{text[:80]!r}. `graphcredit check STORE --quarantine` moves it aside"
    )


def history_configuration(schema: pa.Schema) -> dict[str, Any] | None:
    """Return what a file of `history/` says of how it was counted.

    None where this program would count otherwise, or the file does not say.
    """
    found = configuration_of(schema)
    return found if found.get(FORMULA_KEY, 1) == HISTORY_FORMULA else None
