"""`graphcredit audit`: check that groups are sound and that their credit can be trusted."""

from typing import Any

from graphcredit.cli.options import AsJson, Iteration, Run, StorePath, given, takes
from graphcredit.cli.output.console import interruptible, print_json, progress, say
from graphcredit.credit.audit.check import AuditFinding, AuditSeverity
from graphcredit.credit.audit.run import AuditReport
from graphcredit.credit.audit.run import audit as audit_store
from graphcredit.credit.audit.thresholds import AuditThresholds
from graphcredit.store.layout import open_store


@takes({"Thresholds": AuditThresholds})
def audit(
    store: StorePath,
    run: Run = None,
    iteration: Iteration = None,
    as_json: AsJson = False,
    **flags: Any,
) -> None:
    """Check the groups and the credit of a store. Each finding says where, how much, what to do.

    A fault within its tolerated share is reported for information only. The exit code is 1 if
    there is an error. A store without credit gets only the checks that need steps alone.

    Example: graphcredit audit STORE --max-singleton-share 0.1
    """
    with interruptible("an audit changes nothing"), progress("audit") as show:
        report = audit_store(
            open_store(store),
            run_id=run,
            iteration=iteration,
            thresholds=AuditThresholds(**given(flags)),
            on_progress=show,
        )
    if as_json:
        print_json(report.as_json())
    else:
        show_audit(report)
    if report.count(AuditSeverity.ERROR):
        raise SystemExit(1)


def show_audit(report: AuditReport) -> None:
    """Print the findings, then the numbers."""
    say(report.headline())
    for finding in report.findings:
        say()
        _show_finding(finding)
    say()
    width = max(map(len, report.numbers), default=0)
    for title, numbers in report.numbers.items():
        shown = ", ".join(f"{name}: {_number(value)}" for name, value in numbers.items())
        say(f"{title:<{width}}  {shown}")
    if report.skipped:
        say(
            f"not checked, because there is no credit: {', '.join(report.skipped)}. "
            "`graphcredit credit STORE --estimator …` assigns it."
        )


def _show_finding(finding: AuditFinding) -> None:
    say(f"{finding.severity}: {finding.check.name}: {finding.message}")
    for place in finding.places:
        task = "all tasks" if place.task_id is None else place.task_id
        say(f"    {task} ({place.run_id}, iteration {place.iteration}): {place.detail}")
    if finding.num_places > len(finding.places):
        say(f"    and {finding.num_places - len(finding.places):,} more")
    say(f"    remedy: {finding.check.remedy}")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{round(value, 4) + 0.0:.6g}"
