"""How a row says that its rollout ended: its success, its reward, and rewards by name."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graphcredit.collector.importers.formats.scores import scores_of
from graphcredit.collector.importers.messages.values import (
    NESTED,
    as_number,
    as_verdict,
    fields_of,
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
        named |= numbers_of(row.get(name))
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
