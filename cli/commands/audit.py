"""`graphcredit audit`: check that groups are sound and that their credit can be trusted."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphcredit.cli.options import given, takes
from graphcredit.cli.output.console import PLAIN, interruptible, out, progress
from graphcredit.cli.output.escape import plain_text
from graphcredit.credit.audit.thresholds import AuditThresholds

if TYPE_CHECKING:
    from graphcredit.credit.audit.check import Finding, Place
    from graphcredit.credit.audit.run import AuditReport


@takes({"Thresholds": AuditThresholds})
def audit(
    store: Annotated[Path, typer.Argument(help="The store.")],
    run: Annotated[str | None, typer.Option(help="Only this run.")] = None,
    iteration: Annotated[int | None, typer.Option(help="Only this iteration.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    **flags: Any,
) -> None:
    """Check the groups and the credit of a store. Each finding says where, how much, what to do.

    A fault within its tolerated share is reported for information only. The exit code is 1 if
    there is an error. A store without credit gets only the checks that need steps alone.

    Example: graphcredit audit STORE --max-singleton-share 0.1
    """
    from graphcredit.credit.audit.check import AuditSeverity
    from graphcredit.credit.audit.run import audit as audit_store
    from graphcredit.store.layout import open_store

    with interruptible("an audit changes nothing"), progress("audit") as show:
        report = audit_store(
            open_store(store),
            run_id=run,
            iteration=iteration,
            thresholds=AuditThresholds(**given(flags)),
            on_progress=show,
        )
    if as_json:
        content = json.dumps(report.as_json(), indent=2, ensure_ascii=False)
        sys.stdout.write(content + "\n")
    else:
        _show(report)
    if report.count(AuditSeverity.ERROR):
        raise typer.Exit(1)


def _show(report: "AuditReport") -> None:
    from graphcredit.credit.audit.check import AuditSeverity

    counts = [(report.count(severity), severity.value) for severity in AuditSeverity]
    counted = ", ".join(f"{count} {name}{'s' * (count != 1)}" for count, name in counts[:2])
    _print(f"{counted}, {counts[2][0]} to know")
    for finding in report.findings:
        _print()
        _show_finding(finding)
    _print()
    width = max(map(len, report.numbers), default=0)
    for title, numbers in report.numbers.items():
        shown = ", ".join(f"{name}: {_number(value)}" for name, value in numbers.items())
        _print(f"{title:<{width}}  {shown}")
    for replay in report.replays:
        _print()
        _print(f"decisions replayed by {replay.name}:")
        for line in replay.lines():
            _print(f"    {line}")
    if report.skipped:
        _print(
            f"not checked, because there is no credit: {', '.join(report.skipped)}. "
            "`graphcredit credit STORE --estimator …` assigns it."
        )


def _show_finding(finding: "Finding") -> None:
    _print(f"{finding.severity}: {finding.check.name}: {finding.message}")
    for place in finding.places:
        _print(f"    {_at(place)}")
    if finding.num_places > len(finding.places):
        _print(f"    and {finding.num_places - len(finding.places):,} more")
    _print(f"    remedy: {finding.check.remedy}")


def _at(place: "Place") -> str:
    task = "all tasks" if place.task_id is None else place.task_id
    return f"{task} ({place.run_id}, iteration {place.iteration}): {place.detail}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{round(value, 4) + 0.0:.6g}"


def _print(line: str = "") -> None:
    out.print(plain_text(line), **PLAIN)
