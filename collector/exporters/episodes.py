"""Write credit into an episode of verifiers v1: `advantages`, one value per sampled token.

The importer's own reader says which message became which step, so both always agree.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphcredit.collector.exporters.step_credit import TrajectoryCredit, digest
from graphcredit.collector.exporters.trace_report import TraceCounts
from graphcredit.collector.importers.formats import verifiers_traces
from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.rollout import LoggedRollout, Omission, turns_of
from graphcredit.collector.importers.rules.states import action_of

_ADDRESS = "graphcredit_node"
"""Key that a message gets while it is read: the indices of its trace and node."""

NOT_IN_STORE = "its trajectory is not in the store"
OTHER_STEPS = "the store has other steps under its id"
NO_CREDIT = "its step has no credit"
NO_STEP = "it is no step of the store, for example on another branch"
NO_TOKENS = "it has no sampled tokens (`mask`)"


def is_episode(value: object, path: Path) -> bool:
    """Return whether a JSON value is an episode of verifiers v1."""
    return verifiers_traces.is_row(value, path)


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
    counts.num_replaced = _remove_advantages(episode)
    found: set[tuple[int, int]] = set()
    for rollout in rollouts:
        if isinstance(rollout, Omission):
            counts.unmatched[rollout.reason] += rollout.count
        else:
            found |= _assign(episode, rollout, known, counts)
    matched = {trace for trace, _ in found}
    sampled = {at for at in _sampled(episode) if at[0] in matched}
    counts.num_matched = len(matched)
    if num_others := len(sampled - found):
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


def _remove_advantages(episode: Mapping[str, Any]) -> int:
    nodes = (node for trace in episode["traces"] for node in trace.get("nodes") or ())
    return sum(node.pop("advantages", None) is not None for node in nodes)


def _sampled(episode: Mapping[str, Any]) -> set[tuple[int, int]]:
    return {
        (trace_index, node_index)
        for trace_index, trace in enumerate(episode["traces"])
        for node_index, node in enumerate(trace.get("nodes") or ())
        if node.get("sampled") is True
    }


def _assign(
    episode: Mapping[str, Any],
    rollout: LoggedRollout,
    known: Mapping[str, TrajectoryCredit],
    counts: TraceCounts,
) -> set[tuple[int, int]]:
    """Write the credit of one trajectory; return the places of its steps, none if not matched."""
    turns = turns_of(rollout.messages).turns
    trajectory_id = _encodable(rollout.trajectory_id or "")
    credit = known.get(trajectory_id)
    if credit is None:
        counts.leave_out(rollout.trajectory_id, NOT_IN_STORE)
        return set()
    messages = [turn.message for turn in turns]
    if credit.actions != tuple(digest(_encodable(action_of(message))) for message in messages):
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


def _encodable(text: str) -> str:
    """Return a text as an import stores it: half of a surrogate pair becomes a question mark."""
    return text.encode("utf-8", "replace").decode()
