"""Judge definitions of a state on the steps of a store."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa

from graphcredit.credit.evidence.definition import Definition
from graphcredit.credit.evidence.knowledge import Knowledge, knowledge_of
from graphcredit.credit.evidence.report import EvidenceReport
from graphcredit.credit.evidence.visits import Rollouts, rollouts_of
from graphcredit.credit.merging.merger import open_merger
from graphcredit.credit.steps.arrays import Ints
from graphcredit.credit.steps.batches import BATCH_ROWS, plan_batches, read_batches
from graphcredit.credit.steps.complete import COLUMNS, complete_trajectories
from graphcredit.store.errors import InputError
from graphcredit.store.layout import AnyStore, Shard, open_store
from graphcredit.store.progress import OnProgress, silent

MOST_STEPS = 200_000
"""Steps that are judged: the first whole groups of a store, and no more than about so many."""


def evidence(
    store: AnyStore,
    definitions: Sequence[Definition],
    *,
    run_id: str | None = None,
    iteration: int | None = None,
    most_steps: int = MOST_STEPS,
    on_progress: OnProgress = silent,
) -> EvidenceReport:
    """Judge definitions of a state by what they tell of rollouts that did not make them.

    Args:
        store: A store, or its path.
        definitions: At least one; their names differ.
        run_id: Only this run.
        iteration: Only this iteration.
        most_steps: Steps that are judged: the first whole groups, and about so many.
        on_progress: Called with the definitions judged and their number.

    Raises:
        InputError: There are no complete trajectories.
        SchemaError: A shard cannot be read.
        MissingDependencyError: A merge needs an extra that is not installed.
    """
    opened = open_store(store)
    shards: dict[tuple[str, int], list[Shard]] = {}
    for shard in opened.shards(run_id, iteration):
        shards.setdefault((shard.run_id, shard.iteration), []).append(shard)
    source = partial(_iterations, list(shards.values()), most_steps)
    report = _judged(source, definitions, on_progress)
    if report is None:
        raise InputError(f"{opened.root} must have complete rollouts to judge: found none")
    return report


def evidence_in(
    iterations: Sequence[pa.Table], definitions: Sequence[Definition], *, is_whole: bool = True
) -> EvidenceReport | None:
    """Judge definitions of a state on steps that are in no store; None without complete ones.

    Args:
        iterations: The steps of each iteration, with all columns that the definitions need.
        definitions: At least one, none of states beside those of the steps.
        is_whole: Whether there are no more steps.
    """

    def source(_: Sequence[Definition]) -> Iterator[_Iteration]:
        yield from (_Iteration(tables=[table], is_whole=is_whole) for table in iterations)

    return _judged(source, definitions, silent)


def count_mixed(iterations: Sequence[pa.Table]) -> int:
    """Return the number of groups whose rollouts end differently: the others teach nothing."""
    logged = _Gathering(Definition(name=""))
    for table in iterations:
        logged.add(_Iteration(tables=[table], is_whole=True), lambda *_: None)
    return len(np.unique(logged.whole().rollouts.group))


def _judged(
    source: Callable[[Sequence[Definition]], "Iterator[_Iteration]"],
    definitions: Sequence[Definition],
    on_progress: OnProgress,
) -> EvidenceReport | None:
    gathered = _gather(source, definitions)
    first, knowledge = gathered[definitions[0].name], dict[str, Knowledge]()
    if not first.num_groups:
        return None
    for done, definition in enumerate(definitions):
        on_progress("evidence", done, len(definitions))
        its = gathered[definition.name]
        if definition.omit_alike and _are_alike(its.node, first.node):
            continue
        knowledge[definition.name] = knowledge_of(its.rollouts, its.node)
    order = sorted(knowledge, key=lambda name: -knowledge[name].evidence().value)
    return EvidenceReport(
        num_groups=first.num_groups,
        num_mixed=len(np.unique(first.rollouts.group)),
        num_rollouts=len(first.rollouts.length),
        num_steps=len(first.node),
        is_whole=first.is_whole,
        default=next((each.name for each in definitions if each.is_default), None),
        knowledge={name: knowledge[name] for name in order},
    )


def _are_alike(one: Ints, other: Ints) -> bool:
    """Return whether the same steps share a node."""
    pairs = np.unique(np.stack([one, other]), axis=1).shape[1]
    return pairs == len(np.unique(one)) == len(np.unique(other))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Gathered:
    """The nodes of one definition."""

    rollouts: Rollouts
    node: Ints
    num_groups: int
    is_whole: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class _Iteration:
    """Steps of one iteration."""

    tables: list[pa.Table]
    """Whole groups."""
    is_whole: bool
    """Whether all groups of the iteration are there."""


def _iterations(
    iterations: Sequence[Sequence[Shard]], most_steps: int, definitions: Sequence[Definition]
) -> Iterator[_Iteration]:
    """Yield the first iterations of a store, up to about `most_steps` steps.

    The definitions are of the same states; all columns that one of them needs are read.
    """
    more = (name for each in definitions for name in (*each.merge.columns, *each.columns))
    columns = tuple(dict.fromkeys((*COLUMNS, *more)))
    num_steps = 0
    for logged in iterations:
        if num_steps >= most_steps:
            yield _Iteration(tables=[], is_whole=False)
            return
        shards = [shard.with_state(definitions[0].state) for shard in logged]
        plan = plan_batches(shards, min(BATCH_ROWS, most_steps))
        tables: list[pa.Table] = []
        for pieces in read_batches(shards, plan, columns):
            tables.append(pa.concat_tables([piece.steps for piece in pieces]))
            num_steps += tables[-1].num_rows
            if num_steps >= most_steps:
                break
        num_read = sum(table.num_rows for table in tables)
        yield _Iteration(tables=tables, is_whole=num_read == sum(plan.num_rows))


def _gather(
    source: Callable[[Sequence[Definition]], Iterator[_Iteration]],
    definitions: Sequence[Definition],
) -> dict[str, _Gathered]:
    """Return the nodes of each definition; steps are read once for those of the same states."""
    gatherings = [_Gathering(each) for each in definitions]
    for state in dict.fromkeys(each.state for each in definitions):
        of_state = [each for each in gatherings if each.definition.state == state]
        for iteration in source([each.definition for each in of_state]):
            read = cache(lambda make, number, tables=iteration.tables: make(tables[number]))
            for each in of_state:
                each.add(iteration, read)
    return {each.definition.name: each.whole() for each in gatherings}


class _Gathering:
    """Gathers the nodes of a definition, iteration by iteration."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self._gathered: list[tuple[Rollouts, Ints]] = []
        self._num_nodes = self._num_mixed = self._num_groups = 0
        self._is_whole = True

    def add(self, iteration: _Iteration, read: Callable[[Any, int], Any]) -> None:
        """Take an iteration; `read` returns what a function makes of one of its tables."""
        definition = self.definition
        made = [read(definition.read, number) for number in range(len(iteration.tables))]
        tables = [
            definition.restate(table, read=its)
            for table, its in zip(iteration.tables, made, strict=True)
        ]
        merger = open_merger(definition.merge).learn(tables)
        for table in tables:
            steps, _ = complete_trajectories(table)
            merged = merger.nodes(steps, table)
            rollouts, is_kept = rollouts_of(merged.steps, merged.nodes.group_of_step)
            node = merged.nodes.state_of_step[is_kept] + self._num_nodes
            of_all = replace(rollouts, group=rollouts.group + self._num_mixed)
            self._gathered.append((of_all, node))
            self._num_nodes += len(merged.nodes.text_of_node)
            self._num_mixed += int(rollouts.group.max(initial=-1)) + 1
            self._num_groups += len(merged.nodes.goal_of_group)
        self._is_whole &= iteration.is_whole

    def whole(self) -> _Gathered:
        """Return the nodes of all iterations."""
        return _Gathered(
            rollouts=Rollouts(
                group=_joined([part.group for part, _ in self._gathered]),
                length=_joined([part.length for part, _ in self._gathered]),
                outcome=_joined([part.outcome for part, _ in self._gathered]),
            ),
            node=_joined([node for _, node in self._gathered]),
            num_groups=self._num_groups,
            is_whole=self._is_whole,
        )


def _joined(parts: Sequence[Any]) -> Any:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
