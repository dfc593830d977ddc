"""Is the credit of an iteration made of what the store has now, and in one way?

One answer for all who show or use credit: the checks, the credit stage, the trainer, the view
`credit_state`, the commands and the viewer.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from graphcredit.store.credit_marks.formulas import FORMULA_KEY, configuration_of, successor
from graphcredit.store.credit_marks.sources import Sources, Way
from graphcredit.store.errors import InputError
from graphcredit.store.layout import Store
from graphcredit.store.parquet.shards import open_parquet
from graphcredit.store.schema import split_estimator_column
from graphcredit.store.state_rules.file import STATE_RULES_KEY

State: TypeAlias = Literal["current", "stale", "mixed", "foreign"]
"""`stale`: of other steps or entities than there are. `mixed`: the shards of the iteration were
made in several ways, or some have none. `foreign`: another program wrote it and does not say."""

STATE_SCHEMA = pa.schema(
    [
        pa.field("run_id", pa.string()),
        pa.field("iteration", pa.int32()),
        pa.field("estimator", pa.string()),
        pa.field("state", pa.string()),
        pa.field("reason", pa.string()),
    ]
)

_MOST_LINES = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class CreditState:
    """Whether the credit of an iteration by one estimator can be relied on."""

    run_id: str
    iteration: int
    estimator: str
    state: State
    reason: str
    """Why it is not current; empty if it is."""

    @property
    def is_doubtful(self) -> bool:
        """Whether its numbers must not be used."""
        return self.state in ("stale", "mixed")


def judge(
    ways: Sequence[Way | None], outdated: Callable[[Way], Sequence[str]]
) -> tuple[State, str]:
    """Return the state of an estimator's credit in an iteration, and why it is that.

    Args:
        ways: [shards] how each was made; None where a shard has no credit by the estimator. At
            least one has.
        outdated: `Sources.outdated` of the iteration and the estimator.
    """
    known = [way for way in ways if way is not None]
    kinds = {json.dumps(way, sort_keys=True) for way in known}
    if len(kinds) > 1:
        return "mixed", f"its shards were made in {len(kinds)} ways"
    way = known[0]
    old = outdated(way)
    # A shard that came later has none yet: that makes it stale, like the credit of the others.
    if len(known) < len(ways) and way and "steps" not in old:
        return "mixed", f"{len(ways) - len(known)} of {len(ways)} shards have none"
    if old:
        return "stale", "; ".join(_reason(name, is_said=name in way) for name in old)
    return ("current", "") if way else ("foreign", "its shards do not say what it was made of")


def _reason(mark: str, *, is_said: bool) -> str:
    if mark == FORMULA_KEY:
        return "another version of its formula made it"
    if mark == STATE_RULES_KEY:
        return "it was made with other rules of states than states.toml has"
    sources = _SOURCES.get(mark, mark)
    if is_said:
        return f"it was made of other {sources} than there are"
    return f"it does not say what {sources} it was made of"


_SOURCES = {
    "steps": "step shards",
    "earlier": "step shards of earlier iterations",
    "entities": "entities",
    "er_graph": "entities",
}


def credit_states(
    store: Store, *, run_id: str | None = None, iteration: int | None = None
) -> list[CreditState]:
    """Return the state of all credit of a store, by run, iteration and estimator.

    Footers are read, and the task ids of what `sapo` credited.

    Args:
        store: The store.
        run_id: Only this run.
        iteration: Only this iteration.

    Raises:
        SchemaError: A credit shard cannot be read.
    """
    shards = store.shards(run_id)
    sources = Sources(store, shards)
    wanted = (shard for shard in shards if iteration in (None, shard.iteration))
    return [
        state
        for (run, number), members in groupby(wanted, lambda s: (s.run_id, s.iteration))
        for state in states_of(
            sources, store, run, number, [shard.credit_path for shard in members]
        )
    ]


def states_of(
    sources: Sources, store: Store, run_id: str, iteration: int, credit: Sequence[Path | None]
) -> Iterator[CreditState]:
    """Yield the state of an iteration's credit by each estimator.

    Args:
        sources: What the store has.
        store: The store.
        run_id: The run.
        iteration: The iteration.
        credit: For each of its step shards, where the credit shard is or would be; None for one
            that is damaged.

    Raises:
        SchemaError: A credit shard cannot be read.
    """
    shards = [_ways(path) for path in credit]
    folder = store.graph_dir(run_id, iteration)
    tables = [found for name in ("nodes", "edges") if (found := _said(folder / f"{name}.parquet"))]
    for name in sorted({name for ways in shards for name in ways}):
        ways = [ways.get(name) for ways in shards]
        state, reason = judge(
            ways, lambda way, name=name: sources.outdated(run_id, iteration, name, way)
        )
        way = next(way for way in ways if way is not None)
        if way and state != "mixed" and any(found.get(name) != way for found in tables):
            state, reason = "mixed", "the graph tables are of another run of credit than its shards"
        yield CreditState(
            run_id=run_id, iteration=iteration, estimator=name, state=state, reason=reason
        )


def doubts(states: Iterable[CreditState], most: int = _MOST_LINES) -> list[str]:
    """Return what to tell whoever sees the numbers: a line per iteration and reason, a few at most.

    Args:
        states: From `credit_states`.
        most: Lines; a last one counts the rest.
    """
    alike: dict[tuple[str, int, str, str], list[str]] = {}
    for found in states:
        if found.is_doubtful:
            key = (found.run_id, found.iteration, found.state, found.reason)
            alike.setdefault(key, []).append(found.estimator)
    lines = [
        f"the credit of run {run}, iteration {iteration} by {', '.join(names)} is {state}: "
        f"{reason}. Run `graphcredit credit STORE{_asking_for(names)} "
        f"--run {run} --iteration {iteration}` again"
        for (run, iteration, state, reason), names in alike.items()
    ]
    if (num_more := len(lines) - most) > 0:
        return [*lines[:most], f"and {num_more:,} more like these: see the view credit_state"]
    return lines


def _asking_for(names: Iterable[str]) -> str:
    return "".join(f" -e {name}" for name in dict.fromkeys(map(successor, names)))


def state_table(states: Iterable[CreditState]) -> pa.Table:
    """Return states as a table of `STATE_SCHEMA`: the view `credit_state`."""
    rows = [{name: getattr(state, name) for name in STATE_SCHEMA.names} for state in states]
    return pa.Table.from_pylist(rows, schema=STATE_SCHEMA)


def _ways(path: Path | None) -> dict[str, Way]:
    """Return the estimators that a credit shard has columns of, and how these were made."""
    if path is None or not path.exists():
        return {}
    with open_parquet(path, whole=False) as file:
        schema = file.schema_arrow
    said = configuration_of(schema)
    owners = {split[0] for name in schema.names if (split := split_estimator_column(name))}
    ways = {name: said.get(name) for name in owners}
    return {name: way if isinstance(way, dict) else {} for name, way in ways.items()}


def _said(path: Path) -> dict[str, Any]:
    """Return how a graph table was made; nothing of one that does not say, or is damaged."""
    try:
        with open_parquet(path, whole=False) as file:
            return configuration_of(file.schema_arrow)
    except InputError:
        return {}
