"""Whether an answer was cut by a limit: then its model did not end it."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from graphcredit.collector.importers.messages.answers import sources_of
from graphcredit.collector.importers.messages.rollout import LoggedRollout, Turns
from graphcredit.collector.importers.messages.values import field_at, first_of, is_limit

REASONS = ("finish_reason", "stop_reason", "finishReason", "stopReason", "done_reason")
"""Fields that say why an answer ended."""

_ENDS = ("termination_reason", "terminate_reason", "stop_condition", "exit_status", "status")
_BROKEN = ("incomplete", "content_filter", "aborted", "safety", "error")
_OF_EPISODE = ("turn", "step", "iteration", "round", "call", "cost", "time")
"""Words of limits that an episode reaches between two answers."""

_SAID = ("content", "parts", "tool_calls", "arguments", "input", "output")
_SILENT = frozenset({"role", "content", "tool_calls", "reasoning_content"})
"""Fields that never say it."""

_DEPTH = 3


def reason_of(value: Mapping[str, Any], depth: int = _DEPTH) -> str | None:
    """Return why an answer ended, from an object of it or one within; None if it does not say."""
    if value.keys() <= _SILENT:
        return None
    reason = first_of(value, REASONS)
    if isinstance(reason, str):
        return reason
    if value.get("status") == "incomplete":
        return "incomplete"
    within = (v for name, v in value.items() if isinstance(v, Mapping) and name not in _SAID)
    found = (reason_of(cast("Mapping[str, Any]", v), depth - 1) for v in within if depth)
    return next((reason for reason in found if reason is not None), None)


def is_cut(reason: str) -> bool:
    """Return whether the reason of an answer's end is that it was not allowed to go on."""
    return is_limit(reason) or reason.lower() in _BROKEN


def cuts_of(rollout: LoggedRollout, turns: Turns) -> Iterator[bool]:
    """Yield of each turn whether its answer was cut.

    An answer says so itself. The last one is cut, too, where a limit ended the rollout while it was
    made: it does not say how it ended, and nothing follows it.
    """
    last = len(turns.turns) - 1
    for number, turn in enumerate(turns.turns):
        message = turn.message
        sources = [] if message.plain is message.source else sources_of(message)
        reason = next(filter(None, map(reason_of, reversed(sources))), None)
        if reason is None and number == last and not turns.after:
            yield rollout.truncated and not _is_of_episode(rollout.record)
        else:
            yield reason is not None and is_cut(reason)


def _is_of_episode(record: Mapping[str, Any]) -> bool:
    """Return whether a record names a limit of turns, calls or time."""
    places = ("", "info.", "metadata.")
    values = [field_at(record, f"{at}{name}") for at in places for name in (*REASONS, *_ENDS)]
    limits = [value.lower() for value in values if isinstance(value, str) and is_limit(value)]
    return any(word in limit for limit in limits for word in _OF_EPISODE)
