"""Sampled episodes, and the credit of their steps."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphcredit.credit.estimators.table import Assigner, EstimatorChoice
from graphcredit.credit.iteration.in_memory import compute
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.store.errors import CreditWarning

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

GROUP_SIZE = 8
"""Episodes that follow each other and form a group."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rollouts:
    """Steps of sampled episodes, sorted by episode and time."""

    episode: Ints
    """[num_steps] 0-based."""
    time: Ints
    """[num_steps]."""
    state: Ints
    """[num_steps] true state before the action."""
    action: Ints
    """[num_steps]."""
    target: Ints
    """[num_steps] true state after the action."""
    is_last: Bools
    """[num_steps]."""


def advantages(steps: pa.Table, estimators: Mapping[str, Assigner]) -> dict[str, Floats]:
    """Return the [num_steps] advantage of each estimator, as a trainer gets it.

    Args:
        steps: The steps.
        estimators: Settings by name; the estimator's name comes before a comma. Those without a
            comma share their graphs.
    """
    plain = {name: options for name, options in estimators.items() if "," not in name}
    found = _advantages(steps, plain)
    for name in estimators.keys() - plain.keys():
        (found[name],) = _advantages(steps, {name.partition(",")[0]: estimators[name]}).values()
    return {name: found[name] for name in estimators}


def _advantages(steps: pa.Table, estimators: Mapping[str, Assigner]) -> dict[str, Floats]:
    if not estimators:
        return {}
    credit = credit_of(steps, list(estimators.values()))
    return {name: credit[f"{name}_advantage"].to_numpy().astype(np.float64) for name in estimators}


def credit_of(
    steps: pa.Table, estimators: EstimatorChoice, merge: MergeSettings | None = None
) -> pa.Table:
    """Return the credit of complete steps; that lists of actions lack is no reason to warn here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CreditWarning)
        return compute(steps, estimators=estimators, merge=merge, on_incomplete="raise")
