"""Credit that an earlier run left, of estimators that this run does not touch."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphcredit.credit.plan import Piece
from graphcredit.store.errors import SchemaError
from graphcredit.store.layout import Shard
from graphcredit.store.schema import CONFIGURATION_KEY, CREDIT_COLUMNS, split_estimator_column
from graphcredit.store.shards import conform, open_parquet

_KEY_COLUMNS = CREDIT_COLUMNS[:2]


@dataclass(frozen=True, kw_only=True, slots=True)
class PreviousCredit:
    """Which columns to keep, from which shards, and how they were made."""

    configuration: dict[str, Any]
    """Per kept estimator, all that its columns depended on."""
    columns: tuple[str, ...]
    """Names of the kept columns, over all shards."""
    paths: frozenset[Path]
    """The credit shards to read them from."""
    notices: tuple[str, ...]
    """What a user should know of them."""

    @classmethod
    def load(
        cls, shards: Sequence[Shard], replaced: Collection[str], fingerprint: str
    ) -> "PreviousCredit":
        """Look at the credit shards of an iteration.

        Args:
            shards: The iteration's shards.
            replaced: Estimators whose columns are made anew.
            fingerprint: Of the step shards as they are now.
        """
        configuration: dict[str, Any] = {}
        found: set[str] = set()
        mixed: set[str] = set()
        present, notices = _readable(shards)
        for shard in present:
            names, made_by = _describe(shard.credit_path)
            found |= names
            mixed |= {
                name for name in made_by if configuration.get(name, made_by[name]) != made_by[name]
            }
            configuration |= made_by
        owners = {column: split[0] for column in found if (split := split_estimator_column(column))}
        kept = sorted(set(owners.values()) - set(replaced))
        columns = tuple(sorted(column for column, owner in owners.items() if owner in kept))
        configuration = {name: configuration[name] for name in kept if name in configuration}
        matching = {shard.credit_path for shard in present if columns and _same_rows(shard)}
        notices += tuple(
            f"{shard.credit_path} does not have the rows of its step shard: its columns of other "
            "estimators are not kept"
            for shard in present
            if columns and shard.credit_path not in matching
        )
        notices += tuple(
            f"the {name} columns that were kept were made before this iteration had all of its "
            f"present step shards: run it again with --estimator {name}"
            for name, made_by in configuration.items()
            if made_by.get("steps") != fingerprint
        )
        notices += tuple(
            f"the {name} columns that were kept were made with different options in different "
            f"shards, by a run that was killed: run it again with --estimator {name}"
            for name in kept
            if name in mixed
        )
        return cls(
            configuration=configuration,
            columns=columns,
            paths=frozenset(matching),
            notices=notices,
        )

    def read(
        self, shards: Sequence[Shard], pieces: Sequence[Piece]
    ) -> Mapping[str, NDArray[np.generic]]:
        """Return the kept columns of the rows of some pieces, one after the other; NaN for null."""
        if not self.columns:
            return {}
        tables = [self._read_shard(shards[piece.shard]) for piece in pieces]
        return {
            name: np.concatenate(
                [table[name][piece.rows] for table, piece in zip(tables, pieces, strict=True)]
            )
            for name in self.columns
        }

    def _read_shard(self, shard: Shard) -> dict[str, NDArray[np.float32]]:
        with open_parquet(shard.path) as file:
            num_rows = file.metadata.num_rows
        nulls = {name: np.full(num_rows, np.nan, np.float32) for name in self.columns}
        if shard.credit_path not in self.paths:
            return nulls
        with open_parquet(shard.credit_path) as file:
            present = [name for name in self.columns if name in file.schema_arrow.names]
            table = file.read(columns=present)
        return nulls | {name: table[name].to_numpy().astype(np.float32) for name in present}


def _readable(shards: Sequence[Shard]) -> tuple[list[Shard], tuple[str, ...]]:
    """Return the shards that have credit, and a notice for each whose credit is damaged."""
    present: list[Shard] = []
    notices: list[str] = []
    for shard in shards:
        if not shard.credit_path.exists():
            continue
        try:
            open_parquet(shard.credit_path).close()
            present.append(shard)
        except SchemaError as error:
            notices.append(f"what it held is not kept, it is written anew: {error}")
    return present, tuple(notices)


def _describe(path: Path) -> tuple[set[str], dict[str, Any]]:
    with open_parquet(path) as file:
        schema = file.schema_arrow
    made_by = json.loads((schema.metadata or {}).get(CONFIGURATION_KEY, b"{}"))
    return set(schema.names), made_by


def _same_rows(shard: Shard) -> bool:
    steps, credit = _keys(shard.path), _keys(shard.credit_path)
    return steps.equals(credit)


def _keys(path: Path) -> pa.Table:
    names = [column.name for column in _KEY_COLUMNS]
    with open_parquet(path) as file:
        return conform(file.read(columns=names), _KEY_COLUMNS, where=str(path))
