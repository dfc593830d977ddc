"""`graphcredit credit`: assign credit to the steps of a store."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphcredit.cli.commands.credit_watch import watch as watch_store
from graphcredit.cli.options import given, takes
from graphcredit.cli.output.catalog import rebuild
from graphcredit.cli.output.console import PLAIN, interruptible, out, progress, talk
from graphcredit.credit.options import (
    CreditOptions,
    EstimatorOptions,
    GraphOptions,
    MergeOptions,
)
from graphcredit.store.options import Options
from graphcredit.store.plural import counted

if TYPE_CHECKING:
    from graphcredit.credit.iteration.report import CreditReport
    from graphcredit.store import Store


PANELS: Mapping[str, type[Options]] = {
    "Estimators": EstimatorOptions,
    "States": MergeOptions,
    "Graph and rewards": GraphOptions,
}


@takes(PANELS, names={"estimators": ("--estimator", "-e"), "set": ("--set",)})
def credit(
    store: Annotated[Path, typer.Argument(help="The store.")],
    run: Annotated[str | None, typer.Option(help="Only this run.")] = None,
    iteration: Annotated[int | None, typer.Option(help="Only this iteration.")] = None,
    new: Annotated[
        bool,
        typer.Option(
            "--new", help="Only iterations whose credit by these estimators is missing or stale."
        ),
    ] = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", help="Stay, and credit what is missing or stale once it is at rest."
        ),
    ] = False,
    every: Annotated[
        float,
        typer.Option(
            min=0.01,
            help="With --watch: look so often (seconds), and credit an iteration when no step "
            "shard of it has changed for so long.",
        ),
    ] = 5.0,
    audit: Annotated[
        bool, typer.Option(help="Look for faults of the grouping, as `graphcredit audit`.")
    ] = True,
    engine: Annotated[
        str, typer.Option(help="Where to compute: local, or ray (the extra `ray`).")
    ] = "local",
    ray_address: Annotated[
        str | None,
        typer.Option(help="HOST:PORT of a Ray cluster; else RAY_ADDRESS, or a new local one."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Processes that compute the batches of an iteration; by default 1, and with "
            "--merge segments one per core, but at most 4.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    **flags: Any,
) -> None:
    """Assign credit to every step of the complete trajectories and write it beside them.

    Columns of estimators that are not named stay as they are. Example:

        graphcredit credit STORE -e gigpo -e graphgpo --set graphgpo.distance_discount=0.2

    A log whose observations carry advertisements, counters or changing layout:

        graphcredit credit STORE -e graphgpo --merge segments

    On the machines of a Ray cluster that share the store's file system, under the same path:

        graphcredit credit STORE -e graphgpo --engine ray --ray-address 10.0.0.1:6379

    Beside rollouts and a trainer, until Ctrl-C or SIGTERM, a line an iteration:

        graphcredit credit STORE -e graphgpo --watch --every 2 --json
    """
    from graphcredit.credit.iteration.engines.local import num_workers_for, open_engine
    from graphcredit.credit.iteration.settings import settings_of
    from graphcredit.credit.stage import assign_credit
    from graphcredit.store.layout import open_store

    settings = settings_of(CreditOptions(**given(flags)))
    if workers is None and engine == "local":
        workers = num_workers_for(settings.merge)
    computing = open_engine(engine, ray_address, workers)
    if watch:
        watch_store(
            store,
            settings,
            run=run,
            iteration=iteration,
            every=every,
            engine=computing,
            as_json=as_json,
        )
        return
    opened = open_store(store)
    remedy = "each iteration has its new credit or its old one"
    with (
        interruptible(remedy),
        computing as opened_engine,
        progress("credit") as show,
    ):
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
    if as_json:
        rows = [{"run_id": r, "iteration": i, **v.as_json()} for (r, i), v in reports.items()]
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
    elif not reports:
        out.print("every iteration has this credit already: nothing to do", **PLAIN)
    else:
        show_reports(reports)
        if audit:
            _show_audit(opened, run, iteration)


def show_reports(reports: "dict[tuple[str, int], CreditReport]") -> None:
    """Print what a credit run found: totals, then everything that got no credit or no signal."""
    from graphcredit.credit.iteration.report import merge_reports

    total = merge_reports(reports.values())
    out.print(
        f"credit for {counted(total.num_steps, 'step')} of "
        f"{counted(total.num_trajectories, 'trajectory')} "
        f"({total.num_successes:,} successful) in {counted(total.num_groups, 'group')}, "
        f"{counted(len(reports), 'iteration')}",
        **PLAIN,
    )
    lines = [
        *_merge_lines(total),
        (total.num_states, "states"),
        (total.num_edges, "transitions between them"),
        (
            total.num_unreachable_states,
            "states without an observed path to their group's goal "
            f"({total.unreachable_share:.1%})",
        ),
        (total.num_single_visit_steps, "steps alone in their state group: nothing to compare"),
        (total.num_invalid_steps, "invalid steps"),
        (total.num_singleton_groups, "groups of one trajectory: nothing to compare it with"),
        (total.num_degenerate_groups, "groups whose trajectories all have the same return"),
        (total.num_groups_without_success, "groups without a success"),
        (total.num_groups_without_goal, "groups without a known goal: most graphs are silent"),
        (
            total.num_incomplete,
            f"incomplete trajectories ({counted(total.num_incomplete_steps, 'step')}): no credit",
        ),
    ]
    lines += [(count, f"texts met by {rule}") for rule, count in total.state_rules.items()]
    for count, meaning in lines:
        out.print(f"{count:>12,}  {meaning}", **PLAIN)
    for reason, count in total.incomplete_reasons.items():
        out.print(f"{count:>14,}  {reason}", **PLAIN)
    if total.incomplete_example:
        talk.print(f"for example {total.incomplete_example}", **PLAIN)
    if idle := [rule for rule, count in total.state_rules.items() if not count]:
        talk.print(
            "notice: no text has what these rules of states.toml mean: " + "; ".join(idle),
            **PLAIN,
        )
    for notice in total.notices:
        talk.print(f"notice: {notice}", **PLAIN)


def _merge_lines(total: "CreditReport") -> list[tuple[int, str]]:
    if not total.num_merged_texts and not total.num_refused_merges:
        return []
    return [
        (total.num_texts, "distinct texts of states"),
        (total.num_texts - total.num_merged_texts, "states that they were merged into"),
        (total.num_refused_merges, "merges refused: the admissible actions differ"),
        (
            total.num_contradictions,
            "times one state and action lead to several states "
            f"({total.num_contradictions_before:,} before merging)",
        ),
        *_precision_lines(total),
    ]


def _precision_lines(total: "CreditReport") -> list[tuple[int, str]]:
    precision = total.merge_precision
    if precision is None:
        return []
    return [
        (
            precision.num_pairs,
            f"merged pairs of visits were judged: {precision} of the pairs on one node, at most, "
            "are of one state",
        )
    ]


def _show_audit(store: "Store", run: str | None, iteration: int | None) -> None:
    from graphcredit.cli.commands.audit import show_findings
    from graphcredit.credit.audit.check import AuditSeverity
    from graphcredit.credit.audit.run import audit

    with interruptible("the credit is written"), progress("audit") as show:
        report = audit(
            store,
            run_id=run,
            iteration=iteration,
            least=AuditSeverity.WARNING,
            on_progress=show,
        )
    if report.findings:
        out.print(f"`graphcredit audit {store.root}` says more of these:", **PLAIN)
        show_findings(report)


def _finish(store: "Store") -> None:
    """Bring the catalog up to date, and name what is still waiting to become steps."""
    rebuild(store)
    for spool in sorted(store.spool_dir.glob("*.arrows")):
        talk.print(
            f"notice: {spool} holds steps that are in no shard yet and got no credit; if its "
            "worker is dead, `graphcredit check STORE --recover` brings them in",
            **PLAIN,
        )
