"""How a row says that its rollout ended: its success, its reward, and scores by name.

Scores are those of Langfuse and Weave, feedback of LangSmith, evaluations of OpenTelemetry, and
annotations.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from graphcredit.collector.importers.messages.values import (
    NESTED,
    as_number,
    as_text,
    as_verdict,
    field_at,
    fields_of,
    first_at,
    first_of,
    items_of,
    numbers_of,
    parse_number,
    snake_cased,
)

REWARDS = (
    *("reward", "score", "total_reward", "final_reward", "final_score", "return", "grade"),
    *("episode_reward", "episode_return"),
)
SUCCESSES = (
    *("success", "is_success", "resolved", "is_correct", "solved", "passed", "correct", "won"),
    *("outcome", "verdict"),
)
TOTALS = ("correctness", "accuracy", "outcome", "task_success", "goal_accuracy")
"""Of several scores, those that say how the whole ended."""

IF_BOOL = ("target", "label")
"""Fields that are a verdict where they are true or false; others have the answer or a class."""

LISTS = (
    *("scores", "feedback", "feedback_stats", "feedback_scores", "annotations", "evaluations"),
    *("span_annotations", "assessments", "info.assessments", "output.scores", "evaluation"),
)
_PLACES = frozenset({*LISTS, *(name.partition(".")[0] for name in LISTS)})
_TARGETS = (
    *("observationId", "observation_id", "run_id", "traceId", "trace_id", "sessionId"),
    "session_id",
)
_NAMES = ("name", "key", "gen_ai.evaluation.name", "metric", "assessment_name")
ASIDE = tuple(f"{name}.*.{field}" for name in LISTS for field in ("name", "key", "metric"))
"""Fields of scores that name them."""

_VALUES = (
    *("score", "value", "avg", "gen_ai.evaluation.score.value", "result.score", "feedback.value"),
)
NOTHING: Mapping[str, Any] = {}
_WORDS = ("label", "stringValue", "gen_ai.evaluation.score.label", "result.label")


def is_score(value: object) -> bool:
    """Return whether a record is a score of a trace, in a row of its own."""
    row = fields_of(value)
    has_target = target_of(row) is not None
    has_name = any(row.get(name) for name in _NAMES)
    return has_target and has_name and _number(row) is not None and "input" not in row


def target_of(row: Mapping[str, Any]) -> str | None:
    """Return the id of what a score is of: a span, a trace, or a session."""
    return as_text(first_of(row, _TARGETS))


def scores_of(
    row: Mapping[str, Any],
    attributes: Mapping[str, Any] = NOTHING,
    events: Iterable[Mapping[str, Any]] = (),
) -> dict[str, float]:
    """Return the scores of a row by name, or of a span with its attributes and events."""
    found: dict[str, float] = {}
    if not attributes and events == () and _PLACES.isdisjoint(row):
        return found
    for name in LISTS:
        for given in (field_at(row, name), attributes.get(name)):
            if given is not None:
                found |= dict(_named(given))
    evaluated = (event["attributes"] for event in events if "gen_ai" in event["attributes"])
    return found | dict(_named([each for each in evaluated if field_at(each, _NAMES[2])]))


def numbers_at(value: object, names: Iterable[str]) -> dict[str, float]:
    """Return the scores that an object has under some names."""
    fields = fields_of(value)
    found = {name: as_score(fields[name]) for name in names if name in fields}
    return {name: score for name, score in found.items() if score is not None}


def _named(given: object) -> Iterator[tuple[str, float]]:
    """Yield the names and numbers of scores: items of a list, or an object of them by name."""
    for name, value in fields_of(given).items():
        number = _number(value if isinstance(value, Mapping) else {"value": value})
        if number is not None:
            yield name, number
    for item in map(fields_of, items_of(given)):
        name, number = first_at(item, _NAMES), _number(item)
        if name is not None and number is not None:
            yield str(name), number


def _number(item: object) -> float | None:
    """Return the number of a score; of several their mean, of a word whether it says yes."""
    fields = fields_of(item)
    only = list(fields.values()) if len(fields) == 1 else []  # a scorer of Weave names its own
    found = (*(field_at(item, path) for path in (*_VALUES, *_WORDS)), *only)
    for value in found:
        if values := items_of(value):
            numbers = [number for number in map(as_score, values) if number is not None]
            return sum(numbers) / len(numbers) if numbers else None
        number = as_score(value)
        if number is not None:
            return number
    return None


def as_score(value: object) -> float | None:
    """Return a number, also of a text; of a word for yes or no 1 or 0; None of anything else."""
    verdict = as_verdict(value) if isinstance(value, str) else None
    try:
        number = float(cast("Any", value if verdict is None else verdict))
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def named_fields(row: Mapping[str, Any], names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of these names that are not null: of the row, then of what it nests."""
    row = snake_cased(row)
    for part in (row, *(snake_cased(fields_of(row[name])) for name in NESTED if name in row)):
        for name in names:
            if part.get(name) is not None:
                yield name, part[name]


def reward_of(row: Mapping[str, Any]) -> tuple[float | None, str | None]:
    """Return the reward of a row, and the name of the score that it is if the row has no reward.

    That score says how the whole ended, by its name or as the only one.
    """
    given = next((value for _, value in named_fields(row, REWARDS)), None)
    total = _total(given)
    if total is not None or success_of(row)[1] is not None:
        return total, None
    scores = scores_of(row)
    only = list(scores) if len(scores) == 1 else []
    name = next((name for name in (*REWARDS, *TOTALS, *only) if name in scores), None)
    return (None, None) if name is None else (scores[name], name)


def _total(reward: object) -> float | None:
    """Return the sum of a list of rewards, of tokens or of turns; named ones have no agreed sum."""
    if isinstance(reward, list):
        return sum(as_number(each, "a reward") or 0.0 for each in items_of(reward))
    if isinstance(reward, str):  # as in OpenAI's metadata, which has texts only
        reward = parse_number(reward)
    return None if isinstance(reward, Mapping) else as_number(reward, "the reward")


def rewards_of(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a row by name, for rules that options name."""
    named = numbers_of(row)
    for name in ("metrics", "scores", "rewards", *REWARDS):
        if name in row:
            named |= numbers_of(row[name])
    return {**scores_of(row), **named}


def success_of(row: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the field of a row that says whether its task was accomplished, and its value.

    The first that says yes or no, else the first that is there, else null: `correct` may be the
    answer. Scores of such names follow the fields.
    """
    fields = list(named_fields(row, SUCCESSES))
    fields += [(name, row[name]) for name in IF_BOOL if isinstance(row.get(name), bool)]
    clear = next((field for field in fields if as_verdict(field[1]) is not None), None)
    if clear is not None:
        return clear
    scores = scores_of(row)
    judged = ((n, scores[n]) for n in SUCCESSES if as_verdict(scores.get(n)) is not None)
    return next(judged, fields[0] if fields else ("", None))
