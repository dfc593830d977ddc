"""Recordings of ARC-AGI-3: each row has an action, and the frame that it led to."""

from collections.abc import Mapping
from typing import Any

from graphcredit.collector.importers.messages.values import fields_of, without

_NEEDED = {"game_id", "frame", "state", "action_input"}
_TAKEN = (*_NEEDED, "guid", "available_actions", "full_reset")


def step_of(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return a row of a recording as a step; None if it is none.

    The first one is a reset, which is no action of the agent.
    """
    data = fields_of(row.get("data"))
    if not data.keys() >= _NEEDED:
        return None
    given = fields_of(data["action_input"])
    inputs = without(fields_of(given.get("data")), ("game_id",))
    reasoning = given.get("reasoning")
    return {
        "task_id": data["game_id"],
        "trajectory_id": data.get("guid"),
        "action": None if data.get("full_reset") else {"id": given.get("id"), **inputs},
        "thought": fields_of(reasoning).get("thought", reasoning),
        "observation": data["frame"],
        "admissible_actions": data.get("available_actions"),
        "success": data["state"] == "WIN",
        **without(data, _TAKEN),
    }
