"""`graphcredit credit`: assign credit to the steps of a store."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from graphcredit.cli.commands.credit_report import show_reports
from graphcredit.cli.options import AsJson, Iteration, Run, StorePath, given, takes
from graphcredit.cli.output.console import interruptible, print_json, progress, say, tell
from graphcredit.cli.parameters import Option
from graphcredit.credit.options import CreditOptions, EstimatorOptions, GraphOptions, MergeOptions
from graphcredit.store.options import Options

if TYPE_CHECKING:
    from graphcredit.credit.iteration.report import CreditReport
    from graphcredit.credit.iteration.settings import CreditSettings
    from graphcredit.store import Store


PANELS: Mapping[str, type[Options]] = {
    "Estimators": EstimatorOptions,
    "States": MergeOptions,
    "Graph and rewards": GraphOptions,
}


@takes(
    PANELS,
    omit=("normalise", "substitute", "guard"),
    names={"estimators": "--estimator, -e", "set": "--set"},
)
def credit(
    store: StorePath,
    run: Run = None,
    iteration: Iteration = None,
    new: Annotated[
        bool,
        Option(
            "--new", help="Only iterations whose credit by these estimators is missing or stale."
        ),
    ] = False,
    engine: Annotated[
        str,
        Option(
            help="Where to compute: local, local:N with N processes, ray (the extra `ray`; the "
            "cluster of RAY_ADDRESS, or one of this machine) or ray:HOST:PORT. By default local; "
            "with --merge segments, a process per core, but at most 4."
        ),
    ] = "local",
    as_json: AsJson = False,
    **flags: Any,
) -> None:
    """Assign credit to every step of the complete rollouts and write it beside them.

    Columns of estimators that are not named stay as they are. Example:

        graphcredit credit STORE -e gigpo -e graphgpo --set graphgpo.distance_discount=0.2

    A log whose observations carry advertisements, counters or changing layout:

        graphcredit credit STORE --merge segments

    On the machines of a Ray cluster that share the store's file system, under the same path:

        graphcredit credit STORE --engine ray:10.0.0.1:6379

    Beside workers that record, in a loop of the shell or from cron:

        graphcredit credit STORE --new
    """
    from graphcredit.credit.iteration.engines.local import engine_of
    from graphcredit.credit.iteration.settings import settings_of
    from graphcredit.credit.stage import assign_credit
    from graphcredit.store.layout import open_store

    settings = settings_of(CreditOptions(**given(flags)))
    computing = engine_of(engine, settings.merge)
    opened = open_store(store)
    remedy = "each iteration has its new credit or its old one"
    with interruptible(remedy), computing as opened_engine, progress("credit") as show:
        reports = assign_credit(
            opened,
            settings,
            run_id=run,
            iteration=iteration,
            only_new=new,
            engine=opened_engine,
            on_progress=show,
        )
    _finish(opened)
    _show(reports, settings, as_json=as_json)


def _show(
    reports: "dict[tuple[str, int], CreditReport]", settings: "CreditSettings", *, as_json: bool
) -> None:
    if as_json:
        rows = [{"run_id": r, "iteration": i, **v.as_json()} for (r, i), v in reports.items()]
        print_json(rows)
    elif not reports:
        say("every iteration has this credit already: nothing to do")
    else:
        show_reports(reports, settings.rows)


def _finish(store: "Store") -> None:
    """Name what is still waiting to become steps."""
    for spool in store.spools():
        tell(
            f"notice: {spool} holds steps that are in no shard yet and got no credit; if its "
            "worker is dead, `graphcredit check STORE --recover` brings them in"
        )
