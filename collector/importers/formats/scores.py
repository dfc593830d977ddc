"""Scores of Langfuse, feedback of LangSmith, evaluations of OpenTelemetry, and annotations."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from graphcredit.collector.importers.messages.values import (
    as_text,
    as_verdict,
    field_at,
    fields_of,
    first_at,
    first_of,
    items_of,
)

LISTS = (
    *("scores", "feedback", "feedback_stats", "feedback_scores", "annotations", "evaluations"),
    *("span_annotations", "assessments", "info.assessments", "output.scores", "evaluation"),
)
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
