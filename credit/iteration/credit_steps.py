"""The one road from steps to credit: `compute` and the stage call this."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphcredit.credit.iteration.assemble import Assembly, assemble
from graphcredit.credit.iteration.columns import common_columns, estimator_columns
from graphcredit.credit.iteration.report import CreditReport, report_of
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.merger import Merger


@dataclass(frozen=True, kw_only=True, slots=True)
class CreditedSteps:
    """The credit of some steps."""

    assembly: Assembly
    columns: dict[str, NDArray[np.generic]]
    """Name to [num_steps] values."""
    report: CreditReport


def credit_steps(
    table: pa.Table,
    settings: CreditSettings,
    *,
    merger: Merger,
    provided: Mapping[str, Any],
    number: int = 0,
) -> CreditedSteps:
    """Build the graphs of whole groups, and compute the credit of their steps.

    Args:
        table: Whole groups of one iteration with `settings.columns`, rows in any order.
        settings: What to compute, and how.
        merger: Makes nodes of the states.
        provided: Input to what its provider gives for the iteration.
        number: Of the batch in its iteration.

    Raises:
        SchemaError: A key column holds a null.
        InputError: A number is too large for its column.
    """
    assembly = assemble(
        table,
        merger=merger,
        invalid_action_penalty=settings.invalid_action_penalty,
        inputs=settings.inputs,
        provided=provided,
        number=number,
        columns=settings.reads,
    )
    batch = assembly.batch
    return CreditedSteps(
        assembly=assembly,
        columns=common_columns(assembly) | estimator_columns(batch, settings.estimators),
        report=report_of(assembly),
    )
