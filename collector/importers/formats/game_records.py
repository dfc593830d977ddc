"""Games as two harnesses record them: rows of ARC-AGI-3, and replays of Kaggle's environments."""

from collections.abc import Iterator, Mapping
from typing import Any

from graphcredit.collector.importers.messages.values import (
    MALFORMED,
    RecordError,
    as_list,
    as_objects,
    fields_of,
    without,
)

_NEEDED = {"game_id", "frame", "state", "action_input"}
_TAKEN = (*_NEEDED, "guid", "available_actions", "full_reset")

_OF_REPLAY = {"steps", "statuses", "rewards", "configuration"}
_CLOCKS = ("remainingOverageTime", "step")
"""Parts of an observation that say when it was made, and nothing of the game."""


def step_of(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return a row of a recording of ARC-AGI-3 as a step; None if it is none.

    It has an action and the frame that this led to. The first one is a reset, which is no action of
    the agent.
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


def steps_of_replay(row: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Return the steps of a replay of Kaggle's environments, of each agent; None if it is none.

    A step of a replay has what each agent did, and what that led to. An agent acts where it was
    active before, and sees what the first one sees, too.
    """
    if not row.keys() >= _OF_REPLAY:
        return None
    moments = [as_objects(s, "a step", "an agent's part") for s in as_list(row["steps"], "steps")]
    agents = range(len(as_list(row["rewards"], "rewards")))
    try:
        return [step for agent in agents for step in _of_agent(row, moments, agent)]
    except MALFORMED as error:
        raise RecordError(
            "each agent's part of a step must have action, observation and status, and a replay "
            f"id and name: {error!r}"
        ) from None


def _of_agent(
    row: Mapping[str, Any], moments: list[list[Mapping[str, Any]]], agent: int
) -> Iterator[Mapping[str, Any]]:
    is_alone = len(row["rewards"]) == 1
    acting = [n for n, all_of in enumerate(moments[:-1]) if all_of[agent]["status"] == "ACTIVE"]
    for number in acting:
        is_last = number == acting[-1]
        after = next((n for n in acting if n > number), len(moments) - 1)
        yield {
            "task_id": row["name"] if is_alone else f"{row['name']}:{agent}",
            "trajectory_id": f"{row['id']}:{agent}",
            "step_index": number,
            "state": _seen(moments[number], agent),
            "action": moments[number + 1][agent]["action"],
            "next_state": _seen(moments[after], agent),
            **({"reward": row["rewards"][agent]} if is_last else {}),
            "terminated": is_last,
        }


def _seen(moment: list[Mapping[str, Any]], agent: int) -> dict[str, Any]:
    return without({**moment[0]["observation"], **moment[agent]["observation"]}, _CLOCKS)
