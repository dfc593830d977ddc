"""Explain a step's advantage, in the words that its credit has of what was compared with what."""

from collections.abc import Mapping

import pyarrow as pa

from graphcredit.store.provenance.explained import Compared, Explanation
from graphcredit.viewer.steps.facts import value_of

_PARTS: Mapping[str, str] = {
    "episode_advantage": "episode part",
    "step_advantage": "step part",
    "q": "q",
    "value": "value",
    "outcome": "outcome",
    "baseline": "baseline",
    "progress": "progress",
}
_BESIDE: Mapping[str, str] = {
    "trajectories": "the rollouts of its group",
    "others": "the other rollouts of its group",
    "states": "the steps of its group from this state",
    "edges": "the transitions from this state, each counted once",
    "past": "the steps of its group with the same last states",
    "trajectory": "the steps of its rollout",
    "group": "all steps of its group",
}
"""Whom a number is compared with, in words."""


def reasons(
    table: pa.Table, step: int, estimator: str, explanation: Explanation | None
) -> list[str]:
    """Return lines that explain an estimator's advantage of a step."""
    total = value_of(table, f"{estimator}_advantage", step)
    if total is None:
        return [f"{estimator} gives this step no credit."]
    parts = {
        part: f"{name} {value:+.2f}"
        for part, name in _PARTS.items()
        if (value := value_of(table, f"{estimator}_{part}", step)) is not None
    }
    said = f"{estimator} gives {total:+.2f}"
    if explanation is None:
        return [
            f"{said}.",
            *([f"Its parts: {', '.join(parts.values())}."] if parts else []),
            "This credit does not say what it compared; credit that is assigned by this version "
            "does.",
        ]

    def why(part: str) -> str:
        clauses = "; and ".join(map(_clause, explanation.parts.get(part, ())))
        return f": {clauses}." if clauses else "."

    if not explanation.total:
        return [said + why("advantage")]
    return [
        f"{said}: {explanation.total}.",
        *(words[0].upper() + words[1:] + why(part) for part, words in parts.items()),
    ]


def _clause(compared: Compared) -> str:
    """Return what was compared with whom."""
    unit = f", in {compared.unit}" if compared.unit else ""
    if compared.among == "nobody":
        return f"{compared.what}{f' (a {compared.unit})' if compared.unit else ''}"
    return f"{compared.what}, against {_BESIDE[compared.among]}{unit}"
