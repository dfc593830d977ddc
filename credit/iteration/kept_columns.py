"""Credit that an earlier run left, of estimators that this run does not touch."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphcredit.credit.iteration.columns import read_keys
from graphcredit.credit.steps.arrays import Ints
from graphcredit.credit.steps.batches import Piece, read_rows
from graphcredit.store.credit_marks.formulas import (
    is_of_other_formula,
    stated_configuration,
    successor,
)
from graphcredit.store.credit_marks.sources import MARKS, Way
from graphcredit.store.credit_marks.state import State, judge
from graphcredit.store.errors import SchemaError
from graphcredit.store.layout import Shard
from graphcredit.store.parquet.shards import open_parquet
from graphcredit.store.schema import split_estimator_column

_NOT_OF_GRAPH = MARKS | {"options", "invalid_action_penalty"}
"""What else the configuration of an estimator says."""


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
        cls,
        shards: Sequence[Shard],
        replaced: Collection[str],
        outdated: Callable[[str, Way], Sequence[str]],
        graph: Mapping[str, Any],
    ) -> "PreviousCredit":
        """Look at the credit shards of an iteration.

        Args:
            shards: The iteration's shards.
            replaced: Estimators whose columns are made anew.
            outdated: `Sources.outdated` of the iteration.
            graph: How states are merged now, and over how many iterations distances are found. An
                iteration has one graph, so step parts that are of another one are not kept.
        """
        found, notices = _find(shards, replaced)
        configuration: dict[str, Any] = {}
        kept: set[str] = set()
        for name in sorted({owner for there in found.values() for owner in there.owners.values()}):
            ways = [_made_by(name, found.get(shard.credit_path)) for shard in shards]
            way = next(way for way in ways if way is not None)
            state, reason = judge(ways, partial(outdated, name))
            other = _differences(way, graph) if way and _has_steps(name, found) else ""
            if refusal := _refusal(name, way, state, reason, other):
                notices.append(refusal)
                continue
            if state == "stale":
                notices.append(
                    f"the {name} columns that were kept are stale: {reason}. {_again(name)}"
                )
            kept.add(name)
            if way:
                configuration[name] = way
        columns = {
            column
            for there in found.values()
            for column, owner in there.owners.items()
            if owner in kept
        }
        return cls(
            configuration=configuration,
            columns=tuple(sorted(columns)),
            paths=frozenset(found),
            notices=tuple(notices),
        )

    def read(
        self, shards: Sequence[Shard], pieces: Sequence[Piece]
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
        found = {name: table[name].to_numpy() for name in table.column_names}
        return nulls | {name: values.astype(np.float32) for name, values in found.items()}


def _refusal(name: str, way: Way, state: State, reason: str, other: str) -> str:
    """Return why the columns of an estimator are not kept; an empty string if they are.

    Args:
        name: The estimator.
        way: How its columns were made.
        state: From `judge`.
        reason: From `judge`.
        other: How the graph of its states differs from the present one.
    """
    start = f"the {name} columns were not kept:"
    # They would get one configuration, and nulls where they were missing: whoever reads them later
    # could not tell half of a result from all of it.
    if state == "mixed":
        return (
            f"{start} a run that was killed, or a credit shard that was lost, left them in some "
            f"shards only, or made in different ways ({reason}). {_again(name)}"
        )
    if is_of_other_formula(name, way):
        return (
            f"{start} another version of its formula made them, and its numbers are others now. "
            f"{_again(name)}"
        )
    if other:
        return (
            f"{start} their states are of another graph ({other}), and an iteration has one. "
            f"{_again(name)} too"
        )
    return ""


def _again(name: str) -> str:
    if (today := successor(name)) != name:
        return f"Run credit with --estimator {today}, which has taken its place"
    return f"Run credit again with --estimator {name}"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Found:
    """What a credit shard has of the estimators that this run does not touch."""

    owners: dict[str, str]
    """Name of a column to its estimator's."""
    made_by: dict[str, Any]
    """Per estimator, all that its columns depended on; nothing where another program wrote them."""


def _find(
    shards: Sequence[Shard], replaced: Collection[str]
) -> tuple[dict[Path, _Found], list[str]]:
    """Return what the credit shards have that can be kept, and a notice for each that cannot."""
    found: dict[Path, _Found] = {}
    notices: list[str] = []
    for shard in shards:
        path = shard.credit_path
        if not path.exists():
            continue
        try:
            there = _describe(path, replaced)
        except SchemaError as error:
            notices.append(f"what it held is not kept, it is written anew: {error}")
            continue
        if there.owners and not _same_rows(shard):
            notices.append(
                f"{path} does not have the rows of its step shard: its columns of other "
                "estimators are not kept"
            )
            continue
        found[path] = there
    return found, notices


def _describe(path: Path, replaced: Collection[str]) -> _Found:
    with open_parquet(path) as file:
        schema = file.schema_arrow
    splits = {name: split_estimator_column(name) for name in schema.names}
    owners = {name: split[0] for name, split in splits.items() if split}
    return _Found(
        owners={name: owner for name, owner in owners.items() if owner not in replaced},
        made_by=_configuration(path, schema),
    )


def _configuration(path: Path, schema: pa.Schema) -> dict[str, Any]:
    found = stated_configuration(schema, path)
    if all(isinstance(way, dict) for way in found.values()):
        return found
    raise SchemaError(f"{path} must say how each estimator was configured: found {found!r}")


def _has_steps(name: str, found: Mapping[Path, _Found]) -> bool:
    """Return whether an estimator credits single steps, by the states that they lead to."""
    columns = {column for there in found.values() for column in there.owners}
    splits = filter(None, map(split_estimator_column, columns))
    return any(owner == name and part.startswith("step") for owner, part in splits)


def _differences(way: Mapping[str, Any], graph: Mapping[str, Any]) -> str:
    """Return how the graph that columns were made on differs from the present one, as text."""
    was = {key: value for key, value in way.items() if key not in _NOT_OF_GRAPH}
    return ", ".join(
        f"{key} was {was.get(key)}, is {graph.get(key)}"
        for key in sorted(was.keys() | graph.keys())
        if was.get(key) != graph.get(key)
    )


def _made_by(name: str, there: _Found | None) -> Way | None:
    """Return how an estimator's columns in a shard were made; None where there are none."""
    return there.made_by.get(name, {}) if there and name in there.owners.values() else None


def _same_rows(shard: Shard) -> bool:
    return read_keys(shard.path).equals(read_keys(shard.credit_path))
