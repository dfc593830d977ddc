"""Freshness: is the credit of an iteration made of what the store has now, and in one way?

The checks, the credit stage, the trainer, the view `credit_state`, the commands and the viewer ask
here.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from graphcredit.store.errors import InputError
from graphcredit.store.layout import Store
from graphcredit.store.parquet.shards import open_parquet
from graphcredit.store.provenance.configuration import (
    MERGE_VERSION_KEY,
    MERGE_VERSIONS,
    CreditConfiguration,
    configuration_of,
)
from graphcredit.store.provenance.sources import Sources, source_named
from graphcredit.store.schema import split_estimator_column

Freshness: TypeAlias = Literal["current", "stale", "mixed", "foreign"]
"""`stale`: a source or the merge has changed since. `mixed`: the shards of the iteration were made
in several ways, or some have no credit. `foreign`: another program wrote it and does not name its
sources."""

FRESHNESS_SCHEMA = pa.schema(
    [
        pa.field("run_id", pa.string()),
        pa.field("iteration", pa.int32()),
        pa.field("estimator", pa.string()),
        pa.field("state", pa.string()),
        pa.field("reason", pa.string()),
    ]
)
"""Of the view `credit_state`."""

_MOST_LINES = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class CreditFreshness:
    """Whether the credit of an iteration by one estimator can be relied on."""

    run_id: str
    iteration: int
    estimator: str
    state: Freshness
    reason: str
    """Why it is not current; empty if it is."""

    @property
    def is_doubtful(self) -> bool:
        """Whether its numbers must not be used."""
        return self.state in ("stale", "mixed")


def judge(
    configurations: Sequence[CreditConfiguration | None],
    outdated: Callable[[CreditConfiguration], Sequence[str]],
) -> tuple[Freshness, str]:
    """Return the freshness of an estimator's credit in an iteration, and the reason for it.

    Args:
        configurations: [shards] how each was made; None where a shard has no credit by the
            estimator. At least one has.
        outdated: `Sources.outdated` of the iteration.
    """
    known = [configuration for configuration in configurations if configuration is not None]
    kinds = {json.dumps(configuration, sort_keys=True) for configuration in known}
    if len(kinds) > 1:
        return "mixed", f"its shards were made in {len(kinds)} ways"
    changed = outdated(known[0])
    num_without = len(configurations) - len(known)
    # A shard that came later has none yet: that makes it stale, like the credit of the others.
    if num_without and known[0] and "steps" not in changed:
        return "mixed", f"{num_without} of {len(configurations)} shards have none"
    if changed:
        names = (source_named(name).plural for name in changed)
        return "stale", "; ".join(f"it was made of other {name} than there are" for name in names)
    if not known[0]:
        return "foreign", "its shards do not say what it was made of"
    if was_other := _other_merge(known[0]):
        return "stale", was_other
    return "current", ""


def _other_merge(configuration: CreditConfiguration) -> str:
    """Return that another version of the merge made the states; nothing where it did not."""
    merge = configuration.get("merge")
    was, now = configuration.get(MERGE_VERSION_KEY, 1), MERGE_VERSIONS.get(str(merge), 1)
    if merge not in MERGE_VERSIONS or was == now:
        return ""
    return f"its states are by version {was} of the merge {merge}, which is at {now}"


def credit_freshness(
    store: Store, *, run_id: str | None = None, iteration: int | None = None
) -> list[CreditFreshness]:
    """Return the freshness of all credit of a store, by run, iteration and estimator.

    Footers are read, and the task ids where credit was made of entities.

    Raises:
        SchemaError: A credit shard cannot be read.
    """
    shards = store.shards(run_id)
    sources = Sources(store, shards)
    wanted = (shard for shard in shards if iteration in (None, shard.iteration))
    return [
        freshness
        for (run, number), members in groupby(wanted, lambda s: (s.run_id, s.iteration))
        for freshness in freshness_of(sources, run, number, [s.credit_path for s in members])
    ]


def freshness_of(
    sources: Sources, run_id: str, iteration: int, credit: Sequence[Path | None]
) -> Iterator[CreditFreshness]:
    """Yield the freshness of an iteration's credit by each estimator.

    Args:
        sources: What the store has.
        run_id: The run.
        iteration: The iteration.
        credit: For each of its step shards, where the credit shard is or would be; None for one
            that is damaged.

    Raises:
        SchemaError: A credit shard cannot be read.
    """
    shards = [_of_shard(path) for path in credit]
    folder = sources.store.graph_dir(run_id, iteration)
    said = [_of_table(folder / name) for name in ("nodes.parquet", "edges.parquet")]
    tables = [table for table in said if table]
    for name in sorted({name for of_shard in shards for name in of_shard}):
        configurations = [of_shard.get(name) for of_shard in shards]
        state, reason = judge(
            configurations, lambda made_by: sources.outdated(run_id, iteration, made_by)
        )
        first = next(made_by for made_by in configurations if made_by is not None)
        if first and state != "mixed" and any(table.get(name) != first for table in tables):
            state, reason = "mixed", "the graph tables are of another run of credit than its shards"
        yield CreditFreshness(
            run_id=run_id, iteration=iteration, estimator=name, state=state, reason=reason
        )


def doubts(states: Iterable[CreditFreshness]) -> list[str]:
    """Return a warning to whoever sees the numbers: a line for each run, estimators and reason.

    After a few lines, a last one counts the rest.
    """
    names: dict[tuple[str, int, str, str], list[str]] = {}
    for each in states:
        if each.is_doubtful:
            key = (each.run_id, each.iteration, each.state, each.reason)
            names.setdefault(key, []).append(each.estimator)
    alike: dict[tuple[str, tuple[str, ...], str, str], list[int]] = {}
    for (run, iteration, state, reason), estimators in names.items():
        alike.setdefault((run, tuple(estimators), state, reason), []).append(iteration)
    lines = [_doubt(*key, iterations) for key, iterations in alike.items()]
    if (num_more := len(lines) - _MOST_LINES) > 0:
        return [
            *lines[:_MOST_LINES],
            f"and {num_more:,} more like these: see the view credit_state",
        ]
    return lines


def _doubt(
    run: str, estimators: tuple[str, ...], state: str, reason: str, iterations: list[int]
) -> str:
    (first, *others) = iterations
    where = f"iteration {first}"
    if others:
        where = f"{len(iterations):,} iterations from {first} to {iterations[-1]}"
    flags = "".join(f" -e {name}" for name in estimators)
    part = f" --iteration {first}" if not others else " --new" if state == "stale" else ""
    return (
        f"the credit of run {run}, {where} by {', '.join(estimators)} is {state}: {reason}. "
        f"Run `graphcredit credit STORE{flags} --run {run}{part}` again"
    )


def freshness_rows(states: Iterable[CreditFreshness]) -> list[dict[str, Any]]:
    """Return rows of `FRESHNESS_SCHEMA`: those of the view `credit_state`."""
    return [{name: getattr(state, name) for name in FRESHNESS_SCHEMA.names} for state in states]


def _of_shard(path: Path | None) -> dict[str, CreditConfiguration]:
    """Return the estimators that a credit shard has columns of, and how these were made."""
    if path is None or not path.exists():
        return {}
    with open_parquet(path, whole=False) as file:
        schema = file.schema_arrow
    said = configuration_of(schema)
    owners = {split[0] for name in schema.names if (split := split_estimator_column(name))}
    made_by = {name: said.get(name) for name in owners}
    return {name: way if isinstance(way, dict) else {} for name, way in made_by.items()}


def _of_table(path: Path) -> dict[str, Any]:
    """Return how a graph table was made; nothing of one that does not say, or is damaged."""
    try:
        with open_parquet(path, whole=False) as file:
            return configuration_of(file.schema_arrow)
    except InputError:
        return {}
