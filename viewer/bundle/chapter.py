"""What a bundle has of one iteration: the chosen tasks, and what its index says of them."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.store.layout import Store
from graphcredit.viewer.bundle.choice import BundleChoice, chosen_estimator, chosen_tasks
from graphcredit.viewer.queries.estimators import credit_doubts, estimators
from graphcredit.viewer.queries.surprises import against_outcome
from graphcredit.viewer.queries.tasks import task_facts

_MOST_SURPRISES = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Chapter:
    """One iteration of a bundle."""

    run_id: str
    iteration: int
    tasks: pa.Table
    """Rows of `task_facts`, those of the chosen tasks."""
    estimator: str | None
    """Whose credit is shown; None without any."""
    surprises: pa.Table | None
    """Rows of `against_outcome` about failures in these tasks; None without credit."""
    doubts: Sequence[str]
    """Reasons not to rely on the credit, a line each."""

    @property
    def files(self) -> dict[str, int]:
        """Task to the number of its file, in the order of their names."""
        return {
            task: number for number, task in enumerate(sorted(self.tasks["task_id"].to_pylist()))
        }

    @property
    def name(self) -> str:
        """The run and the iteration, in words."""
        return f"Run {self.run_id}, iteration {self.iteration}"


def read_chapter(store: Store, run_id: str, iteration: int, choice: BundleChoice) -> Chapter:
    """Read what the index of a bundle says of an iteration.

    Raises:
        OptionError: There is no such kind of tasks.
        SchemaError: A file cannot be read.
    """
    known = estimators(store, run_id=run_id, iteration=iteration)
    estimator = chosen_estimator(known, choice)
    facts = task_facts(store, run_id=run_id, iteration=iteration, estimator=estimator, others=known)
    tasks = chosen_tasks(facts, choice)
    surprises = None
    if estimator is not None:
        found = against_outcome(
            store,
            run_id=run_id,
            iteration=iteration,
            estimator=estimator,
            success=False,
            num_rows=_MOST_SURPRISES,
        )
        surprises = found.filter(pc.is_in(found["task_id"], tasks["task_id"].combine_chunks()))
    return Chapter(
        run_id=run_id,
        iteration=iteration,
        tasks=tasks,
        estimator=estimator,
        surprises=surprises,
        doubts=credit_doubts(store, run_id=run_id, iteration=None, number=iteration),
    )
