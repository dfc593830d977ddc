"""Find the advantage column of an iteration, check it against the steps, and read it."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.store.errors import InputError
from graphcredit.store.layout import Shard, Store
from graphcredit.store.parquet.numbers import numpy_of
from graphcredit.store.parquet.shards import conform, open_parquet
from graphcredit.store.provenance.freshness import freshness_of
from graphcredit.store.provenance.sources import Sources
from graphcredit.store.schema import CREDIT_KEY_COLUMNS, Column, split_estimator_column
from graphcredit.trainer.data.ragged import Floats


@dataclass(frozen=True, kw_only=True, slots=True)
class CreditRows:
    """Columns of the n rows of a credit shard that the trainer needs."""

    path: Path
    """The credit shard."""
    keys: pa.Table
    """[n] trajectory_id and step_index."""
    advantage: Floats
    """[n] advantage; NaN without credit."""

    def advantages_of(self, keys: pa.Table, start: int) -> Floats:
        """Return [k] the advantages of some steps.

        Args:
            keys: [k] trajectory_id and step_index of the steps, among others.
            start: Row of the first of them.

        Raises:
            InputError: The credit shard has other steps there.
        """
        mine = self.keys.slice(start, keys.num_rows)
        if any(not mine[key.name].equals(keys[key.name]) for key in CREDIT_KEY_COLUMNS):
            raise InputError(
                f"{self.path} must have the rows of its step shard, in the same order: they "
                f"differ at row {start + _first_difference(mine, keys)}. "
                "Run `graphcredit credit` again"
            )
        return self.advantage[start : start + keys.num_rows]


def read_credit(shard: Shard, column: str) -> CreditRows:
    """Return the credit beside a step shard.

    Raises:
        SchemaError: The credit shard cannot be read.
        InputError: An advantage is infinite or NaN. A step without credit must have null.
    """
    path = shard.credit_path
    advantage = Column(name=column, type=pa.float64(), nullable=True, meaning="")
    wanted = (*CREDIT_KEY_COLUMNS, advantage)
    with open_parquet(path) as file:
        present = [c.name for c in wanted if c.name in file.schema_arrow.names]
        table = conform(file.read(columns=present), wanted, where=str(path))
    values = numpy_of(table[column], float("nan"))
    is_faulty = ~np.isfinite(values) & numpy_of(table[column].is_valid())
    if is_faulty.any():
        row = int(is_faulty.argmax())
        raise InputError(
            f"an advantage must be finite, or null where there is none: found {values[row]} in "
            f"{column} of {path}, row {row}. Run `graphcredit credit` again"
        )
    return CreditRows(
        path=path, keys=table.select([key.name for key in CREDIT_KEY_COLUMNS]), advantage=values
    )


def check_credit(store: Store, shards: Sequence[Shard], column: str) -> None:
    """Raise unless every step shard has current credit in a column, all with one configuration.

    The shards are of one iteration.

    Raises:
        InputError: A credit shard or its column is missing, is stale, or was made with another
            configuration than the others.
        SchemaError: A shard cannot be read.
    """
    parts = split_estimator_column(column)
    estimator = parts[0] if parts else column
    again = f"Run `graphcredit credit STORE -e {estimator}`"
    _refuse_missing(shards, column, again)
    for shard in shards:
        num_rows, num_credited = _num_rows(shard.path), _num_rows(shard.credit_path)
        if num_credited != num_rows:
            raise InputError(
                f"a credit shard must have a row for each row of its step shard: "
                f"{shard.credit_path} has {num_credited} for {num_rows}. {again} again"
            )
    run_id, iteration = shards[0].run_id, shards[0].iteration
    paths = [shard.credit_path for shard in shards]
    sources = Sources(store, store.shards(run_id))
    for freshness in freshness_of(sources, run_id, iteration, paths):
        if freshness.estimator == estimator and freshness.is_doubtful:
            raise InputError(
                "credit must be made of the steps that are there, in all shards in one way: "
                f"{column} in {paths[0].parent} is {freshness.state}, {freshness.reason}. "
                f"{again} again"
            )


def _refuse_missing(shards: Sequence[Shard], column: str, again: str) -> None:
    without = [shard for shard in shards if not shard.credit_path.exists()]
    if len(without) == len(shards):
        raise InputError(f"training needs credit: none of {len(shards)} shards has any. {again}")
    if without:
        raise InputError(
            f"every step shard must have a credit shard: {without[0].credit_path} is missing, so "
            f"the credit is older than the steps. {again} again"
        )
    names: list[list[str]] = []
    for shard in shards:
        with open_parquet(shard.credit_path) as file:
            names.append(file.schema_arrow.names)
    if not all(column in there for there in names):
        raise InputError(
            f"every credit shard must have the column {column}: found {_listed(names)}. {again}, "
            "or check the name, --advantage"
        )


def _listed(names: Sequence[Sequence[str]]) -> str:
    counts = Counter(name for there in names for name in there if name.endswith("_advantage"))
    whole = len(names)
    return (
        ", ".join(
            name if count == whole else f"{name} (in {count} of {whole} shards)"
            for name, count in sorted(counts.items())
        )
        or "no advantages"
    )


def _num_rows(path: Path) -> int:
    with open_parquet(path) as file:
        return file.metadata.num_rows


def _first_difference(credit: pa.Table, steps: pa.Table) -> int:
    differs = np.zeros(steps.num_rows, bool)
    for key in CREDIT_KEY_COLUMNS:
        differs |= ~numpy_of(pc.equal(credit[key.name], steps[key.name]))
    return int(differs.argmax())
