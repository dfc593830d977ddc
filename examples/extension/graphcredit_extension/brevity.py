"""Brevity: a step is worth how little its agent had to say."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.relative import relative
from graphcredit.credit.estimators.table import Estimator
from graphcredit.credit.steps.arrays import Floats
from graphcredit.store.options import Weight


@dataclass(frozen=True, kw_only=True, slots=True)
class Brevity:
    """Fewer letters of thought are better, among the steps of the group.

        A = -w · rel(number of letters; group)

    A step without a thought has 0 letters. Source: an example, not to learn from.
    """

    weight: Weight = 1.0
    """w."""

    def assign(self, batch: StepBatch) -> dict[str, Floats]:
        """Return the part, [num_steps]."""
        letters = pc.fill_null(pc.utf8_length(batch.columns["thought"]), 0).to_numpy()
        compared = relative(letters.astype(np.float64), batch.group_of_step, batch.num_groups)
        return {"advantage": -self.weight * compared}


ROW = Estimator(
    name="brevity",
    options=Brevity,
    writes=("advantage",),
    reads=("thought",),
    made_of=("thoughts",),
    balanced={"advantage": "group"},
    paper="examples/extension",
)
