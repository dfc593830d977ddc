"""Write credit into an episode of verifiers v1: `advantages`, one value per sampled token.

The importer's own reader says which message became which step, so both always agree.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from graphcredit.collector.exporters.step_credit import TrajectoryCredit, digest
from graphcredit.collector.importers.formats import verifiers_traces
from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.rollout import LoggedRollout, Omission, turns_of
from graphcredit.collector.importers.rules.states import action_of
from graphcredit.collector.importers.steps import clean

_ADDRESS = "graphcredit_node"
"""Key that a message gets while it is read: the indices of its trace and node."""

_MOST_NAMES = 10
"""Traces without a trajectory that are named."""

NOT_IN_STORE = "its trajectory is not in the store"
OTHER_STEPS = "the store has other steps under its id"
NO_CREDIT = "its step has no credit"
NO_STEP = "it is no step of the store, for example on another branch"
NO_TOKENS = "it has no sampled tokens (`mask`)"


@dataclass(kw_only=True, slots=True)
class TraceCounts:
    """Counts over episodes; those of parts add up."""

    num_traces: int = 0
    """Traces of the log."""
    num_matched: int = 0
    """Those whose trajectory is in the store."""
    num_assigned: int = 0
    """Messages that got advantages."""
    num_tokens: int = 0
    """Sampled tokens of these."""
    num_replaced: int = 0
    """Messages that had advantages before, of whatever origin; they are replaced or removed."""
    unmatched: Counter[str] = field(default_factory=Counter[str])
    """Traces without a trajectory, by reason."""
    unassigned: Counter[str] = field(default_factory=Counter[str])
    """Sampled messages of matched traces that got no advantages, by reason."""
    names: list[str] = field(default_factory=list[str])
    """Ids of some traces without a trajectory."""
    matched: set[str] = field(default_factory=set[str])
    """Ids of the trajectories that a trace was found for."""

    def leave_out(self, trace_id: str | None, reason: str) -> None:
        """Count a trace without a trajectory."""
        self.unmatched[reason] += 1
        self.names.append(trace_id or "a trace without an id")

    def add(self, other: "TraceCounts") -> None:
        """Add the counts of an episode."""
        self.num_traces += other.num_traces
        self.num_matched += other.num_matched
        self.num_assigned += other.num_assigned
        self.num_tokens += other.num_tokens
        self.num_replaced += other.num_replaced
        self.unmatched += other.unmatched
        self.unassigned += other.unassigned
        self.names = [*self.names, *other.names][:_MOST_NAMES]
        self.matched |= other.matched


def assign_advantages(
    episode: dict[str, Any], known: Mapping[str, TrajectoryCredit], path: Path
) -> TraceCounts:
    """Write the credit of an episode's steps into its messages.

    Afterwards no other advantages are left in it: messages without credit have none, which is not
    the same as 0.

    Args:
        episode: The episode; it is changed.
        known: The credit of the trajectories by id.
        path: The file that it is from.

    Raises:
        RecordError: It is not what the format says.
    """
    counts = TraceCounts(num_traces=len(episode["traces"]))
    record = Record(path=path, place="", value=_addressed(episode), share=0.0)
    rollouts = list(verifiers_traces.read(record))
    nodes = [node for trace in episode["traces"] for node in trace.get("nodes") or ()]
    counts.num_replaced = sum(node.pop("advantages", None) is not None for node in nodes)
    steps: set[tuple[int, int]] = set()
    for rollout in rollouts:
        if isinstance(rollout, Omission):
            counts.unmatched[rollout.reason] += rollout.count
        else:
            steps |= _assign(episode, rollout, known, counts)
    matched = {trace for trace, _ in steps}
    counts.num_matched = len(matched)
    sampled = {
        (trace, number)
        for trace in matched
        for number, node in enumerate(episode["traces"][trace]["nodes"])
        if node.get("sampled") is True
    }
    if num_others := len(sampled - steps):
        counts.unassigned[NO_STEP] += num_others
    return counts


def _addressed(episode: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy in which each message tells where it stands."""
    traces = [
        {
            **trace,
            "nodes": [
                {**node, "message": {**node["message"], _ADDRESS: (trace_index, node_index)}}
                for node_index, node in enumerate(trace.get("nodes") or ())
            ],
        }
        for trace_index, trace in enumerate(episode["traces"])
    ]
    return {**episode, "traces": traces}


def _assign(
    episode: Mapping[str, Any],
    rollout: LoggedRollout,
    known: Mapping[str, TrajectoryCredit],
    counts: TraceCounts,
) -> set[tuple[int, int]]:
    """Write the credit of one trajectory; return the places of its steps, none if not matched."""
    turns = turns_of(rollout.messages).turns
    trajectory_id = clean(rollout.trajectory_id or "")
    credit = known.get(trajectory_id)
    if credit is None:
        counts.leave_out(rollout.trajectory_id, NOT_IN_STORE)
        return set()
    messages = [turn.message for turn in turns]
    if credit.actions != tuple(digest(clean(action_of(message))) for message in messages):
        counts.leave_out(rollout.trajectory_id, OTHER_STEPS)
        return set()
    counts.matched.add(trajectory_id)
    places: Sequence[tuple[int, int]] = [message.source[_ADDRESS] for message in messages]
    for (trace, node), advantage in zip(places, credit.advantages, strict=True):
        _assign_node(episode["traces"][trace]["nodes"][node], advantage, counts)
    return set(places)


def _assign_node(node: dict[str, Any], advantage: np.float32, counts: TraceCounts) -> None:
    num_sampled = sum(map(bool, node.get("mask") or ()))
    if np.isnan(advantage):
        counts.unassigned[NO_CREDIT] += 1
    elif not num_sampled:
        counts.unassigned[NO_TOKENS] += 1
    else:
        # The shortest text of a 32-bit float: 0.1, not 0.10000000149011612.
        node["advantages"] = [float(str(advantage))] * num_sampled
        counts.num_assigned += 1
        counts.num_tokens += num_sampled
