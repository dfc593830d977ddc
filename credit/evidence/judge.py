"""Judge definitions of a state on the steps of a store."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from graphcredit.credit.evidence.knowledge import Estimate, Knowledge, knowledge_of
from graphcredit.credit.evidence.parts import Parts, knowledge_of_parts
from graphcredit.credit.evidence.visits import Rollouts, rollouts_of
from graphcredit.credit.merging.merger import open_merger
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.steps.arrays import Ints
from graphcredit.credit.steps.batches import BATCH_ROWS, Plan, plan_batches, read_batches
from graphcredit.credit.steps.complete import COLUMNS, complete_trajectories
from graphcredit.store.errors import InputError
from graphcredit.store.layout import LOGGED_STATE, AnyStore, Shard, open_store
from graphcredit.store.progress import OnProgress, silent

MOST_STEPS = 200_000
"""Steps that are judged: the first whole groups of a store, and no more than about so many."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Definition:
    """A definition of a state: which text it has, and which texts are one."""

    name: str
    state: str = LOGGED_STATE
    """Which states of the store it takes."""
    merge: MergeSettings = field(default_factory=MergeSettings)
    columns: tuple[str, ...] = ()
    """Step columns that its texts are made of, besides those of every credit run."""
    restate: Callable[[pa.Table], pa.Table] = lambda table: table
    """Returns the steps of whole groups with its texts as `state` and `next_state`."""
    parts: "LearnedParts | None" = None
    """What its states may have besides, if that tells more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LearnedParts:
    """Parts of a state, of which those stay that tell something."""

    of: Callable[[pa.Table], Mapping[str, Ints]]
    """Returns [num_rows] each part of the steps of whole groups."""
    name: Callable[[Sequence[str]], str]
    """Returns the name of the definition with some of the parts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidenceReport:
    """What each definition of a state tells, the one with the most evidence first."""

    num_groups: int
    """Judged groups."""
    num_mixed: int
    """Those with different outcomes: the others teach nothing."""
    num_rollouts: int
    """Rollouts of the mixed groups."""
    num_steps: int
    """Their steps."""
    is_whole: bool
    """Whether all groups of the store were judged."""
    knowledge: dict[str, Knowledge]
    """Definition to what it tells."""

    @property
    def best(self) -> str | None:
        """The definition with the most evidence, if that is beyond chance."""
        name = next(iter(self.knowledge), None)
        return name if name and self.knowledge[name].beyond_chance().is_positive else None

    @property
    def chosen(self) -> Estimate | None:
        """Evidence beyond chance of the best on one half of the groups, seen on the other half.

        It is the mean of both ways. None with fewer than four mixed groups.
        """
        if self.num_mixed < 4:
            return None
        even = np.arange(self.num_mixed) % 2 == 0
        seen = [self._chosen_on(half).beyond_chance(~half) for half in (even, ~even)]
        error = sum(each.error**2 for each in seen) ** 0.5 / 2
        return Estimate(value=sum(each.value for each in seen) / 2, error=error)

    def _chosen_on(self, groups: Any) -> Knowledge:
        return max(self.knowledge.values(), key=lambda each: each.evidence(groups).value)

    @property
    def groups_needed(self) -> int | None:
        """About how many mixed groups would show evidence; None if more of them would not."""
        if self.best or not self.knowledge or self.num_mixed < 2:
            return None
        seen = next(iter(self.knowledge.values())).beyond_chance()
        if seen.value <= 0:
            return None
        return int(np.ceil(self.num_mixed * (2 * seen.error / seen.value) ** 2))

    def as_json(self) -> dict[str, Any]:
        """Return everything, for programs."""
        return {
            "num_groups": self.num_groups,
            "num_mixed": self.num_mixed,
            "num_rollouts": self.num_rollouts,
            "num_steps": self.num_steps,
            "is_whole": self.is_whole,
            "best": self.best,
            "chosen": _as_json(self.chosen),
            "groups_needed": self.groups_needed,
            "definitions": {
                name: {
                    "num_states": each.num_states,
                    "company": each.company,
                    "information": _as_json(each.information()),
                    "information_by_part": list(each.by_part),
                    "guidance": _as_json(each.guidance()),
                    "evidence": _as_json(each.evidence()),
                    "beyond_chance": _as_json(each.beyond_chance()),
                }
                for name, each in self.knowledge.items()
            },
        }


def _as_json(estimate: Estimate | None) -> dict[str, float | None] | None:
    if estimate is None:
        return None
    error = estimate.error if np.isfinite(estimate.error) else None
    return {"value": estimate.value, "error": error}


def evidence(
    store: AnyStore,
    definitions: Sequence[Definition],
    *,
    run_id: str | None = None,
    iteration: int | None = None,
    on_progress: OnProgress = silent,
) -> EvidenceReport:
    """Judge definitions of a state by what they tell of rollouts that did not make them.

    Args:
        store: A store, or its path.
        definitions: At least one; their names differ.
        run_id: Only this run.
        iteration: Only this iteration.
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
    first, knowledge = None, dict[str, Knowledge]()
    for done, definition in enumerate(definitions):
        on_progress("evidence", done, len(definitions))
        gathered = _gather(list(shards.values()), definition)
        if not gathered.num_groups:
            raise InputError(f"{opened.root} must have complete trajectories to judge: found none")
        first = first or gathered
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
        knowledge={name: knowledge[name] for name in order},
    )


def _known(definition: Definition, gathered: "_Gathered") -> tuple[str, Knowledge]:
    """Return the name of a definition, and what it tells."""
    rollouts, node = gathered.rollouts, gathered.node
    if definition.parts is None:
        return definition.name, knowledge_of(rollouts, node)
    kept, known = knowledge_of_parts(rollouts, Parts(base=node, of=gathered.parts))
    return definition.parts.name(kept), known


@dataclass(frozen=True, kw_only=True, slots=True)
class _Gathered:
    """The nodes of one definition."""

    rollouts: Rollouts
    node: Ints
    parts: Mapping[str, Ints]
    """Numbers that are equal where the part is, within a group."""
    num_groups: int
    is_whole: bool


def _gather(iterations: Sequence[Sequence[Shard]], definition: Definition) -> _Gathered:
    """Return the nodes of a definition in the first groups of some iterations."""
    gathered: list[tuple[Rollouts, Ints]] = []
    parts: defaultdict[str, list[Ints]] = defaultdict(list)
    num_nodes = num_mixed = num_groups = num_steps = 0
    is_whole = True
    for logged in iterations:
        shards = [shard.with_state(definition.state) for shard in logged]
        if num_steps >= MOST_STEPS:
            is_whole = False
            break
        plan = plan_batches(shards, min(BATCH_ROWS, MOST_STEPS))
        tables = list(_tables(shards, plan, definition, MOST_STEPS - num_steps))
        read = sum(table.num_rows for table in tables)
        is_whole &= read == sum(plan.num_rows)
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
        num_steps += read
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
