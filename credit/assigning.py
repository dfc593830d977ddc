"""`graphcredit.credit`: credit for the steps of a store, by the options of the command."""

from collections.abc import Sequence
from typing import Any

from graphcredit.credit.estimators.table import EstimatorChoice
from graphcredit.credit.iteration.engines.local import BatchEngine, engine_of
from graphcredit.credit.iteration.report import CreditReport, merge_reports
from graphcredit.credit.iteration.settings import settings_by
from graphcredit.credit.options import RECOMMENDED, CreditOptions
from graphcredit.credit.stage import assign_credit
from graphcredit.store.keywords import takes_options
from graphcredit.store.layout import AnyStore
from graphcredit.store.progress import OnProgress, silent
from graphcredit.store.text_table import Report, Rows


class CreditReports(Report, dict[tuple[str, int], CreditReport]):
    """(run, iteration) to what was found in it."""

    def headline(self) -> str:
        """Return how much got credit."""
        if not self:
            return "every iteration has this credit already: nothing to do"
        return merge_reports(self.values()).headline()

    def table(self) -> tuple[Sequence[str], Rows]:
        """Return a row for each iteration."""
        rows = [(run, f"{number}", report.headline()) for (run, number), report in self.items()]
        return ("run", "iteration", "credit"), rows


@takes_options(CreditOptions, omit=("set",))
def credit(
    store: AnyStore,
    *,
    estimators: EstimatorChoice = RECOMMENDED,
    run: str | None = None,
    iteration: int | None = None,
    new: bool = False,
    engine: str | BatchEngine = "local",
    on_progress: OnProgress = silent,
    **options: Any,
) -> CreditReports:
    """Assign credit to every complete trajectory of a store, and write it beside the steps.

    Columns of other estimators stay as they are.

    Example:
        graphcredit.credit("store", estimators="grpo,reach", merge="segments", new=True)

    Args:
        store: A store, or its path.
        estimators: Names, with commas in one text; objects of `graphcredit.estimators`; or both in
            a list.
        run: Only this run.
        iteration: Only this iteration.
        new: Only iterations whose credit by these estimators is missing, stale or made with other
            settings.
        engine: Where to compute: local, local:N with N processes, ray or ray:HOST:PORT. The bytes
            that are written are the same with any.
        on_progress: Called with the iterations done, as a fraction, and their number.
        **options: Of `CreditOptions`.

    Returns:
        A report for each (run, iteration) that was credited.

    Raises:
        InputError: There are no steps to credit, no entities where an estimator needs them, or
            another process credits one of the iterations.
        OptionError: An estimator or an option is not right.
        SchemaError: A shard cannot be read.
        NothingToCreditError: No trajectory is complete; no file was changed.
    """
    settings = settings_by(estimators, **options)
    with engine_of(engine, settings.merge) as opened:
        reports = assign_credit(
            store,
            settings,
            run_id=run,
            iteration=iteration,
            only_new=new,
            engine=opened,
            on_progress=on_progress,
        )
    return CreditReports(reports)
