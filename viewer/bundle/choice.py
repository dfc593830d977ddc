"""Which part of a store goes into a bundle: the choices of the viewer's boxes and filters."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.store.errors import InputError, OptionError
from graphcredit.store.layout import Store
from graphcredit.viewer.queries.tasks import KINDS


@dataclass(frozen=True, kw_only=True, slots=True)
class BundleChoice:
    """What to put into a bundle."""

    run_id: str | None = None
    """The run; by default the last by name."""
    iteration: int | None = None
    """Only this iteration; by default all of the run."""
    estimator: str | None = None
    """Whose credit the graphs and lists show; by default the most telling one of each iteration."""
    tasks: tuple[str, ...] = ()
    """Only these tasks; by default all."""
    find: str = ""
    """Only tasks whose names contain this text, in any case."""
    show: str = "all"
    """A key of `queries.tasks.KINDS`: only tasks of this kind."""

    def words(self) -> str:
        """Return what of a run was chosen; empty for everything."""
        parts = (
            f"iteration {self.iteration}" if self.iteration is not None else "",
            f"tasks {', '.join(self.tasks)}" if self.tasks else "",
            f"names that contain {self.find!r}" if self.find else "",
            f"tasks that are {self.show}" if self.show != "all" else "",
        )
        return ", ".join(filter(None, parts))


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
    condition = KINDS[choice.show]
    rows = facts if condition is None else facts.filter(condition)
    if choice.find:
        rows = rows.filter(pc.match_substring(rows["task_id"], choice.find, ignore_case=True))
    if choice.tasks:
        rows = rows.filter(pc.is_in(rows["task_id"], pa.array(choice.tasks)))
    return rows
