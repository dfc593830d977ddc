"""Judge definitions of a state on the steps of a store."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from graphcredit.credit.evidence.definition import Definition
from graphcredit.credit.evidence.knowledge import Knowledge, knowledge_of
from graphcredit.credit.evidence.parts import Parts, knowledge_of_parts
from graphcredit.credit.evidence.report import EvidenceReport
from graphcredit.credit.evidence.visits import Rollouts, rollouts_of
from graphcredit.credit.merging.merger import open_merger
from graphcredit.credit.steps.arrays import Ints
from graphcredit.credit.steps.batches import BATCH_ROWS, Plan, plan_batches, read_batches
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
        raise InputError(f"{opened.root} must have complete trajectories to judge: found none")
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

    def source(definition: Definition) -> Iterator[_Iteration]:
        for table in iterations:
            yield _Iteration(tables=[definition.restate(table)], is_whole=is_whole)

    return _judged(source, definitions, silent)


def count_mixed(iterations: Sequence[pa.Table]) -> int:
    """Return the number of groups whose rollouts end differently: the others teach nothing."""
    source = (_Iteration(tables=[table], is_whole=True) for table in iterations)
    return len(np.unique(_gather(source, Definition(name="")).rollouts.group))


def _judged(
    source: Callable[[Definition], "Iterator[_Iteration]"],
    definitions: Sequence[Definition],
    on_progress: OnProgress,
) -> EvidenceReport | None:
    first, knowledge = None, dict[str, Knowledge]()
    for done, definition in enumerate(definitions):
        on_progress("evidence", done, len(definitions))
        gathered = _gather(source(definition), definition)
        first = first or gathered
        if not first.num_groups:
            return None
        if definition.omit_alike and _are_alike(gathered.node, first.node):
            continue
        name, known = _known(definition, gathered)
        knowledge.setdefault(name, known)
    assert first is not None, "there is a definition"
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


def _known(definition: Definition, gathered: "_Gathered") -> tuple[str, Knowledge]:
    """Return the name of a definition, and what it tells."""
    rollouts, node = gathered.rollouts, gathered.node
    if definition.parts is None:
        return definition.name, knowledge_of(rollouts, node)
    kept, known = knowledge_of_parts(rollouts, Parts(base=node, of=gathered.parts))
    return definition.parts.name(kept), known


def _are_alike(one: Ints, other: Ints) -> bool:
    """Return whether the same steps share a node."""
    pairs = np.unique(np.stack([one, other]), axis=1).shape[1]
    return pairs == len(np.unique(one)) == len(np.unique(other))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Gathered:
    """The nodes of one definition."""

    rollouts: Rollouts
    node: Ints
    parts: Mapping[str, Ints]
    """Numbers that are equal where the part is, within a group."""
    num_groups: int
    is_whole: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class _Iteration:
    """Steps of one iteration, in a definition's words."""

    tables: list[pa.Table]
    """Whole groups."""
    is_whole: bool
    """Whether all groups of the iteration are there."""


def _iterations(
    iterations: Sequence[Sequence[Shard]], most_steps: int, definition: Definition
) -> Iterator[_Iteration]:
    """Yield the first iterations of a store, up to about `most_steps` steps."""
    num_steps = 0
    for logged in iterations:
        if num_steps >= most_steps:
            yield _Iteration(tables=[], is_whole=False)
            return
        shards = [shard.with_state(definition.state) for shard in logged]
        plan = plan_batches(shards, min(BATCH_ROWS, most_steps))
        tables = list(_tables(shards, plan, definition, most_steps - num_steps))
        read = sum(table.num_rows for table in tables)
        num_steps += read
        yield _Iteration(tables=tables, is_whole=read == sum(plan.num_rows))


def _gather(iterations: Iterator[_Iteration], definition: Definition) -> _Gathered:
    """Return the nodes of a definition in some iterations."""
    gathered: list[tuple[Rollouts, Ints]] = []
    parts: defaultdict[str, list[Ints]] = defaultdict(list)
    num_nodes = num_mixed = num_groups = 0
    is_whole = True
    for iteration in iterations:
        is_whole &= iteration.is_whole
        tables = iteration.tables
        read = sum(table.num_rows for table in tables)
        merger = open_merger(definition.merge).learn(tables, read)
        for table in tables:
            steps, _ = complete_trajectories(table)
            merged = merger.nodes(steps, table)
            rollouts, is_kept = rollouts_of(merged.steps, merged.nodes.group_of_step)
            node = merged.nodes.state_of_step[is_kept] + num_nodes
            gathered.append((replace(rollouts, group=rollouts.group + num_mixed), node))
            for name, part in definition.parts.of(table).items() if definition.parts else ():
                parts[name].append(part[merged.steps.row[is_kept]])
            num_nodes += len(merged.nodes.text_of_node)
            num_mixed += int(rollouts.group.max(initial=-1)) + 1
            num_groups += len(merged.nodes.goal_of_group)
    return _Gathered(
        rollouts=Rollouts(
            group=_joined([part.group for part, _ in gathered]),
            length=_joined([part.length for part, _ in gathered]),
            outcome=_joined([part.outcome for part, _ in gathered]),
        ),
        node=_joined([node for _, node in gathered]),
        parts={name: _joined(of_part) for name, of_part in parts.items()},
        num_groups=num_groups,
        is_whole=is_whole,
    )


def _tables(
    shards: Sequence[Shard], plan: Plan, definition: Definition, most: int
) -> Iterator[pa.Table]:
    """Yield the steps of the first batches of whole groups, in the definition's words."""
    columns = dict.fromkeys((*COLUMNS, *definition.merge.columns, *definition.columns))
    num_steps = 0
    for pieces in read_batches(shards, plan, tuple(columns)):
        table = pa.concat_tables([piece.steps for piece in pieces])
        yield definition.restate(table)
        num_steps += table.num_rows
        if num_steps >= most:
            return


def _joined(parts: Sequence[Any]) -> Any:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
