"""The rule that --score names: how good the state after each turn is, by whoever judged it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from graphcredit.collector.importers.messages.rollout import LoggedRollout, Message, Turns
from graphcredit.collector.importers.messages.values import (
    NESTED,
    RecordError,
    as_number,
    field_at,
    fields_of,
    items_of,
)

LISTS = ("turn_scores", "step_scores", "state_scores")
"""Fields that may have a list with the score after each turn."""

_NO_LIST = "list of scores that is not a number or null for each turn: --score names another field"


class Scores(NamedTuple):
    """The scores of a rollout."""

    of_turns: list[float | None]
    left_out: Mapping[str, int] = {}


ScoreRule = Callable[[LoggedRollout, Turns], Scores]


def score_rule(text: str) -> ScoreRule:
    """Return the rule that `--score` names: auto, or a field."""
    if text == "auto":
        return _auto_scores
    return lambda rollout, turns: Scores(_named(rollout, turns, text))


def _auto_scores(rollout: LoggedRollout, turns: Turns) -> Scores:
    """Return what the format has, or a list under a usual name."""
    scores = [turn.message.score for turn in turns.turns]
    if any(score is not None for score in scores):
        return Scores(scores)
    for part in _parts(rollout.record):
        for name in LISTS:
            if isinstance(part.get(name), list):
                try:
                    return Scores(_of_list(part[name], rollout, turns, name))
                except RecordError:
                    return Scores(scores, {_NO_LIST: 1})
    return Scores(scores)


def _parts(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for whole in (record, fields_of(record.get("trace"))):
        yield whole
        yield from (fields_of(whole[name]) for name in NESTED if name in whole)


def _named(rollout: LoggedRollout, turns: Turns, name: str) -> list[float | None]:
    """Return the scores at a path: of a list of the record, else of each message."""
    for whole in (rollout.record, rollout.record.get("trace")):
        value = field_at(whole, name)
        if isinstance(value, list):
            return _of_list(items_of(value), rollout, turns, name)
    after = [turn.seen for turn in turns.turns[1:]] + [turns.after]
    return [
        _of_messages((turn.message, *reversed(results)), name)
        for turn, results in zip(turns.turns, after, strict=True)
    ]


def _of_messages(messages: tuple[Message, ...], name: str) -> float | None:
    values = (field_at(message.source, name) for message in messages)
    return as_number(next((value for value in values if value is not None), None), name)


def _of_list(
    values: list[Any], rollout: LoggedRollout, turns: Turns, name: str
) -> list[float | None]:
    places = range(len(turns.turns)) if rollout.places is None else rollout.places
    num_answers = len(turns.turns) if rollout.num_answers is None else rollout.num_answers
    if len(values) != num_answers:
        raise RecordError(
            f"{name} must have a score or null for each of the {num_answers} turns: "
            f"it has {len(values)}"
        )
    return [as_number(values[place], name) for place in places]
