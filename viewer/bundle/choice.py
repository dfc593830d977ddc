"""The part of a store that goes into a bundle: the choices of the viewer's boxes and filters."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.store.errors import InputError, OptionError
from graphcredit.store.layout import Store
from graphcredit.viewer.bundle.options import BundleChoice
from graphcredit.viewer.queries.estimators import credit_doubts, estimators
from graphcredit.viewer.queries.tasks import KINDS, task_facts, tasks_of_kind
from graphcredit.viewer.widgets.task_names import task_names, with_instructions


def chosen_iterations(store: Store, choice: BundleChoice) -> tuple[str, list[int]]:
    """Return the run and its iterations.

    Raises:
        InputError: The store does not have them.
    """
    runs = store.runs()
    if not runs:
        raise InputError(f"{store.root} must have steps to show: found none")
    run_id = runs[-1] if choice.run_id is None else choice.run_id
    if run_id not in runs:
        raise InputError(f"the run must be in the store: found {', '.join(runs)}, not {run_id!r}")
    iterations = store.iterations(run_id)
    if choice.iteration is None:
        return run_id, iterations
    if choice.iteration not in iterations:
        listed = ", ".join(map(str, iterations))
        raise InputError(
            f"the iteration must be one of run {run_id}: found {listed}, not {choice.iteration}"
        )
    return run_id, [choice.iteration]


def chosen_estimator(names: Sequence[str], choice: BundleChoice) -> str | None:
    """Return the estimator to show in an iteration with the credit of some; None without any."""
    if choice.estimator is None:
        return names[0] if names else None
    return choice.estimator if choice.estimator in names else None


def chosen_tasks(facts: pa.Table, choice: BundleChoice) -> pa.Table:
    """Return the rows of `task_facts` that were chosen, in their order.

    Raises:
        OptionError: There is no such kind of tasks.
    """
    if choice.show not in KINDS:
        raise OptionError(f"--show must be one of {', '.join(KINDS)}: got {choice.show!r}")
    rows = tasks_of_kind(facts, choice.show, choice.find or "")
    if choice.tasks:
        rows = rows.filter(pc.is_in(rows["task_id"], pa.array(choice.tasks)))
    return rows


@dataclass(frozen=True, kw_only=True, slots=True)
class Chapter:
    """One iteration of a bundle."""

    run_id: str
    iteration: int
    tasks: pa.Table
    """Rows of `task_facts` with instructions, those of the chosen tasks."""
    estimator: str | None
    """Whose credit is shown; None without any."""
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
    names = task_names(store, run_id=run_id, iteration=iteration)
    tasks = chosen_tasks(with_instructions(facts, names), choice)
    return Chapter(
        run_id=run_id,
        iteration=iteration,
        tasks=tasks,
        estimator=estimator,
        doubts=credit_doubts(store, run_id=run_id, iteration=None, number=iteration),
    )
