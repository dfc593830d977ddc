"""Why each step of a task has its credit, in words, for files that need no server."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from graphcredit.credit.why.decisions import decisions_of_task
from graphcredit.credit.why.sentences import sentence
from graphcredit.store.layout import Store
from graphcredit.viewer.queries.estimators import estimators, explanation

_ESTIMATOR = "reach"
"""Whose credit decisions are told by."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Why:
    """The words for the steps of one trajectory."""

    sentences: Mapping[int, str]
    """Index of a step to its sentence."""
    formula: str
    """What the numbers behind the sentences are made of; empty if the credit does not say it."""


def why_of_task(store: Store, *, run_id: str, iteration: int, task_id: str) -> dict[str, Why]:
    """Return the words for each trajectory of a task; none without credit by `reach`.

    Raises:
        SchemaError: A file cannot be read.
    """
    if _ESTIMATOR not in estimators(store, run_id=run_id, iteration=iteration):
        return {}
    said = explanation(store, run_id=run_id, iteration=iteration, estimator=_ESTIMATOR)
    formula = f"{_ESTIMATOR} is {said.total}." if said else ""
    sentences: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for each in decisions_of_task(store, run_id=run_id, iteration=iteration, task_id=task_id):
        sentences[each.trajectory_id][each.step_index] = sentence(each)
    return {name: Why(sentences=words, formula=formula) for name, words in sentences.items()}
