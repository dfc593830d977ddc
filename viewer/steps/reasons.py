"""Explain a step's advantage, in the words of the estimator that gave it."""

from collections.abc import Iterator, Mapping

import pyarrow as pa

from graphcredit.store.provenance.explained import Compared, Explanation
from graphcredit.viewer.steps.compared import GroupSteps, Reference
from graphcredit.viewer.steps.facts import value_of

_PARTS: Mapping[str, str] = {
    "episode_advantage": "episode part",
    "step_advantage": "step part",
}

_BESIDE: Mapping[str, str] = {
    "trajectories": "the {} trajectories of its group",
    "others": "the {} other trajectories of its group",
    "states": "the {} steps of its group from this state",
    "edges": "the {} transitions from this state, each counted once",
    "trajectory": "the {} steps of its trajectory",
    "group": "all {} steps of its group",
}
_ALONE: Mapping[str, str] = {
    "trajectories": "its group has no other trajectory to compare with",
    "others": "its group has no other trajectory to compare with",
    "states": "no other step of its group starts from this state, so it is compared with none",
    "edges": "the group took no other transition from this state",
    "trajectory": "its trajectory has no other step to compare with",
    "group": "its group has no other step to compare with",
}


def reasons(
    table: pa.Table,
    step: int,
    estimator: str,
    *,
    explanation: Explanation | None,
    group: GroupSteps,
) -> list[str]:
    """Return lines that explain an estimator's advantage of a step.

    Args:
        table: The steps of a trajectory, with their credit.
        step: Row of the table.
        estimator: The estimator.
        explanation: What its credit says of itself.
        group: All steps of the group.
    """
    total = value_of(table, f"{estimator}_advantage", step)
    if total is None:
        return [f"{estimator} gives this step no credit."]
    parts = {
        part: value
        for part in _PARTS
        if (value := value_of(table, f"{estimator}_{part}", step)) is not None
    }
    if explanation is None:
        return [f"{_gives(estimator, total)}.", *_unexplained(parts)]
    row = group.row_of(table["trajectory_id"][step].as_py(), table["step_index"][step].as_py())
    told = list(_told(explanation, parts, group, row, estimator))
    if not explanation.total:
        own = explanation.parts.get("advantage", ())
        return [f"{_gives(estimator, total)}{_why(own, group, row, estimator)}."]
    return [f"{_gives(estimator, total)}: {explanation.total}.", *told]


def _gives(estimator: str, total: float) -> str:
    return f"{estimator} gives {total:+.2f}"


def _unexplained(parts: Mapping[str, float]) -> Iterator[str]:
    if parts:
        named = ", ".join(f"{_PARTS[part]} {value:+.2f}" for part, value in parts.items())
        yield f"Its parts: {named}."
    yield (
        "This credit does not say what it compared; credit that is assigned by this version does."
    )


def _told(
    explanation: Explanation,
    parts: Mapping[str, float],
    group: GroupSteps,
    row: int | None,
    estimator: str,
) -> Iterator[str]:
    for part, value in parts.items():
        why = _why(explanation.parts.get(part, ()), group, row, estimator)
        yield f"{_PARTS[part].capitalize()} {value:+.2f}{why}."


def _why(several: tuple[Compared, ...], group: GroupSteps, row: int | None, estimator: str) -> str:
    """Return the comparisons of a part, each after a colon or an "and"; empty without any."""
    clauses = [
        _clause(one, None if row is None else group.reference(row, one, estimator=estimator))
        for one in several
    ]
    return "".join(f"{'; and' if number else ':'} {one}" for number, one in enumerate(clauses))


def _clause(compared: Compared, found: Reference | None) -> str:
    unit = f", in {compared.unit}" if compared.unit else ""
    if compared.among == "nobody":
        return f"{compared.what}{f' (a {compared.unit})' if compared.unit else ''}"
    if compared.among == "past":
        return f"{compared.what}, against the steps of its group with the same last states{unit}"
    if found is None:
        return compared.what
    alone = 0 if compared.among == "others" else 1
    if found.count <= alone:
        return f"{compared.what}; {_ALONE[compared.among]}"
    beside = _BESIDE[compared.among].format(found.count)
    if found.own is None or found.mean is None:
        return f"{compared.what}, against {beside}{unit}"
    return (
        f"{compared.what} is {found.own:.3g}, against a mean of {found.mean:.3g} over "
        f"{beside}{unit}"
    )
