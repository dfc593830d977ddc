"""Explain why a training learnt nothing, if it had no signal."""

from collections.abc import Mapping, Sequence
from typing import Any


def why_nothing_was_learnt(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Return why the policy learnt nothing from the log, or None if it learnt something.

    Even if all advantages are 0, a divergence or an entropy bonus may have changed the weights.

    Args:
        rows: The metrics of every update, as in `metrics.jsonl`.
    """
    if not rows:
        return "no update was made"

    def all_are(name: str, value: float) -> bool:
        return all(row.get(name) == value for row in rows)

    if all_are("advantage_zero", 1.0):
        return "all advantages are 0"
    if all_are("learning_rate", 0.0):
        return "the learning rate was 0"
    if all_are("correction_mean", 0.0):
        return "the correction gave every token the weight 0"
    if all_are("grad_norm", 0.0):
        return "the gradient was 0 in every update"
    return None
