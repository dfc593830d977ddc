"""Credit that an earlier run left, of estimators that this run does not touch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphcredit.credit.estimators.table import configure, is_of_other_version
from graphcredit.credit.iteration.columns import read_keys
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.steps.arrays import Ints
from graphcredit.credit.steps.batches import ShardPart, read_rows
from graphcredit.store.errors import OptionError, SchemaError
from graphcredit.store.layout import Shard
from graphcredit.store.parquet.numbers import numpy_of
from graphcredit.store.parquet.shards import open_parquet
from graphcredit.store.provenance.configuration import (
    BALANCED_KEY,
    SOURCES_KEY,
    VERSION_KEY,
    CreditConfiguration,
    stated_configuration,
)
from graphcredit.store.provenance.explained import EXPLAINED_KEY
from graphcredit.store.provenance.freshness import judge
from graphcredit.store.provenance.sources import SOURCES
from graphcredit.store.schema import split_estimator_column
from graphcredit.store.state_rules import STATE_RULES_KEY

_NOT_OF_GRAPH = {
    *(VERSION_KEY, SOURCES_KEY, BALANCED_KEY, EXPLAINED_KEY, "options", "invalid_action_penalty"),
    *(row.name for row in SOURCES if row.name != STATE_RULES_KEY),
}
"""What else the configuration of an estimator says."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PreviousCredit:
    """Which columns to keep, from which shards, and how they were made."""

    configuration: dict[str, CreditConfiguration]
    """Per kept estimator, all that its columns depended on."""
    columns: tuple[str, ...]
    """Names of the kept columns, over all shards."""
    paths: frozenset[Path]
    """The credit shards to read them from."""
    notices: tuple[str, ...]
    """What a user should know of them."""

    @classmethod
    def load(
        cls,
        shards: Sequence[Shard],
        settings: CreditSettings,
        outdated: Callable[[CreditConfiguration], Sequence[str]],
    ) -> "PreviousCredit":
        """Look at the credit shards of an iteration.

        Args:
            shards: The iteration's shards.
            settings: What is made anew, and the graph that it is made on. An iteration has one
                graph, so step parts that are of another one are not kept.
            outdated: `Sources.outdated` of the iteration.
        """
        left, notices = _read_footers(shards, settings)
        configuration: dict[str, CreditConfiguration] = {}
        columns: list[str] = []
        for name in sorted({owner for shard in left.values() for owner in shard.owners.values()}):
            made_by = [
                left[shard.credit_path].made_by(name) if shard.credit_path in left else None
                for shard in shards
            ]
            its_columns = {
                c for shard in left.values() for c, owner in shard.owners.items() if owner == name
            }
            is_kept, reason = _judge(name, made_by, its_columns, settings, outdated)
            if reason:
                notices.append(reason + _cure(name, settings))
            if is_kept:
                columns += its_columns
                configuration[name] = next(each for each in made_by if each is not None)
        return cls(
            configuration={name: made_by for name, made_by in configuration.items() if made_by},
            columns=tuple(sorted(columns)),
            paths=frozenset(left),
            notices=tuple(notices),
        )

    def read(
        self, shards: Sequence[Shard], pieces: Sequence[ShardPart]
    ) -> Mapping[str, NDArray[np.generic]]:
        """Return the kept columns of the rows of some pieces, one after the other; NaN for null."""
        if not self.columns:
            return {}
        tables = [self._read_rows(shards[piece.shard], piece.rows) for piece in pieces]
        return {name: np.concatenate([table[name] for table in tables]) for name in self.columns}

    def _read_rows(self, shard: Shard, rows: Ints) -> dict[str, NDArray[np.float32]]:
        nulls = {name: np.full(len(rows), np.nan, np.float32) for name in self.columns}
        if shard.credit_path not in self.paths or not len(rows):
            return nulls
        with open_parquet(shard.credit_path) as file:
            table = pa.concat_tables(read_rows(file, self.columns, rows))
        numbers = {name: table[name].cast(pa.float32(), safe=False) for name in table.column_names}
        return nulls | {name: numpy_of(column, null=np.nan) for name, column in numbers.items()}


def _cure(name: str, settings: CreditSettings) -> str:
    """Return how to have the columns again; nothing where these settings do not take them."""
    wanted: dict[str, Any] = dict(settings)
    try:
        wanted["estimators"] = configure([name])
        CreditSettings(**wanted)
    except OptionError:
        return ""
    return f". Run credit again with --estimator {name}"


def _judge(
    name: str,
    made_by: Sequence[CreditConfiguration | None],
    columns: set[str],
    settings: CreditSettings,
    outdated: Callable[[CreditConfiguration], Sequence[str]],
) -> tuple[bool, str]:
    """Return whether to keep the columns of an estimator, and what is wrong with them."""
    freshness, reason = judge(made_by, outdated)
    start = f"the {name} columns were not kept:"
    # They would get one configuration, and nulls where they were missing: whoever reads them later
    # could not tell half of a result from all of it.
    if freshness == "mixed":
        return False, (
            f"{start} a run that was killed, or a credit shard that was lost, left them in some "
            f"shards only, or made in different ways ({reason})"
        )
    configuration = next(each for each in made_by if each is not None)
    if is_of_other_version(name, configuration):
        return False, (
            f"{start} another version of its formula made them, and its numbers are others now"
        )
    if configuration and any(column.startswith(f"{name}_step") for column in columns):
        graph = settings.graph_as_json()
        was = {key: value for key, value in configuration.items() if key not in _NOT_OF_GRAPH}
        changes = ", ".join(
            f"{key} was {was.get(key)}, is {graph.get(key)}"
            for key in sorted(was.keys() | graph.keys())
            if (was.get(key) or None) != (graph.get(key) or None)  # off is as not stated
        )
        if changes:
            return False, (
                f"{start} their states are of another graph ({changes}), and an iteration has one"
            )
    if freshness == "stale":
        return True, f"the {name} columns that were kept are stale: {reason}"
    return True, ""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Left:
    """What a credit shard has of the estimators that this run does not touch."""

    owners: Mapping[str, str]
    """Name of a column to its estimator's."""
    configuration: Mapping[str, CreditConfiguration]
    """Per estimator, all that its columns depended on; nothing where another program wrote them."""

    def made_by(self, name: str) -> CreditConfiguration | None:
        """Return how the columns of an estimator were made; None where there are none."""
        return self.configuration.get(name, {}) if name in self.owners.values() else None


def _read_footers(
    shards: Sequence[Shard], settings: CreditSettings
) -> tuple[dict[Path, _Left], list[str]]:
    """Return what the credit shards have that can be kept, and a notice for each that cannot."""
    left: dict[Path, _Left] = {}
    notices: list[str] = []
    for shard in shards:
        path = shard.credit_path
        if not path.exists():
            continue
        try:
            with open_parquet(path) as file:
                schema = file.schema_arrow
            configuration = stated_configuration(schema, path)
            if not all(isinstance(made_by, dict) for made_by in configuration.values()):
                raise SchemaError(
                    f"{path} must say how each estimator was configured: found {configuration!r}"
                )
        except SchemaError as error:
            notices.append(f"what it held is not kept, it is written anew: {error}")
            continue
        splits = {name: split_estimator_column(name) for name in schema.names}
        owners = {name: split[0] for name, split in splits.items() if split}
        owners = {name: owner for name, owner in owners.items() if owner not in settings.estimators}
        if owners and not read_keys(shard.path).equals(read_keys(path)):
            notices.append(
                f"{path} does not have the rows of its step shard: its columns of other "
                "estimators are not kept"
            )
            continue
        left[path] = _Left(owners=owners, configuration=configuration)
    return left, notices
