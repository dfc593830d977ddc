"""The configuration in a file's metadata: how its columns were made, by estimator.

The credit stage writes it from the estimators' rows, so that readers of a store need not know any
estimator by name. Another program may leave it out.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from graphcredit.store.errors import SchemaError
from graphcredit.store.files.parse import parse_json, parse_object
from graphcredit.store.schema import CONFIGURATION_KEY

CreditConfiguration: TypeAlias = Mapping[str, Any]
"""How an estimator's columns were made; empty where their file does not say."""

VERSION_KEY = "formula"
"""The version of the estimator's formula, or of the counts in `history/`; 1 if it is missing."""

SOURCES_KEY = "sources"
"""Names of rows of `SOURCES` that the estimator's inputs are made of."""

STATE_KEY = "state"
"""The name of the states that the graph is made of; missing where they are the logged ones."""

BALANCED_KEY = "balanced"
"""Which parts have mean 0, and over what: one of `BALANCES`."""

BALANCES = ("trajectories", "states", "group")
"""`trajectories` of a group, all steps of one having one value; `states`: the steps that start from
one state; `group`: all steps of a group. Readers ignore any other word."""

MERGE_VERSION_KEY = "merge_version"
"""The version of the merge that made the states; 1 if it is missing."""

MERGE_VERSIONS: Mapping[str, int] = {"segments": 4}
"""Versions of this program's merges that came to make other states; 1 if a merge is not here."""

HISTORY_VERSION = 4
"""Version of the counts in `history/`."""


def configuration_of(schema: pa.Schema) -> dict[str, Any]:
    """Return how the columns of a file were made; nothing where it does not say so in JSON."""
    return parse_object(
        (schema.metadata or {}).get(CONFIGURATION_KEY, b"").decode(errors="replace")
    )


def stated_configuration(schema: pa.Schema, path: Path | str) -> dict[str, Any]:
    """Return how the columns of a credit shard were made, by estimator.

    Raises:
        SchemaError: Its metadata do not say so as a JSON object.
    """
    text = (schema.metadata or {}).get(CONFIGURATION_KEY, b"{}")
    try:
        configuration = parse_json(text)
    except ValueError:
        configuration = None
    if isinstance(configuration, dict):
        return configuration
    raise SchemaError(
        f"{path} must say in its metadata how its columns were made, as a JSON object: found "
        f"{text[:80]!r}. Run `graphcredit credit` again"
    )


def history_configuration(schema: pa.Schema) -> dict[str, Any] | None:
    """Return how a file of `history/` was counted; None where this program counts otherwise."""
    configuration = configuration_of(schema)
    return configuration if configuration.get(VERSION_KEY) == HISTORY_VERSION else None
