"""`graphcredit check`: check every rule of the format over the whole store."""

from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from graphcredit.cli.options import AsJson, StorePath
from graphcredit.cli.output.console import print_json, progress, say
from graphcredit.cli.parameters import Option
from graphcredit.store.checks.run import check_store
from graphcredit.store.checks.violations import CheckReport, Violation
from graphcredit.store.layout import Store, open_store
from graphcredit.store.plural import counted


def check(
    store: StorePath,
    as_json: AsJson = False,
    recover: Annotated[
        bool, Option("--recover", help="First turn the spools of dead workers into shards.")
    ] = False,
) -> None:
    """Check every rule of the store's format, and the digest of every file.

    Errors name the file, the rows, and the command that takes the file out of the store where
    nothing else mends it. The exit code is 1 if there is an error. Notices are oddities that may
    stay. Rollouts that never ended are counted; they are not errors.

    Example: graphcredit check STORE --recover
    """
    opened = open_store(store)
    held: dict[str, str] = {}
    recovered = _recover(opened, held) if recover else []
    with progress("check") as show:
        report = check_store(opened, lambda done, total: show("check", done, total))
    if as_json:
        spools = {"recovered": recovered, "not_recovered": held} if recover else {}
        print_json(report.as_json() | spools)
    else:
        _print_recovered(recovered, held)
        _print_report(report)
    if report.errors:
        raise SystemExit(1)


def _recover(store: Store, held: dict[str, str]) -> list[dict[str, Any]]:
    """Recover the spools of dead workers.

    `held` receives each worker whose lock another process holds, with a message that names it.
    """
    from graphcredit.collector.recording.recovery import recover_spools

    recovered = recover_spools(store, on_held=held.__setitem__)
    return [
        {
            name: value.relative_to(store.root).as_posix() if isinstance(value, Path) else value
            for name, value in asdict(spool).items()
        }
        for spool in recovered
    ]


def _print_recovered(recovered: list[dict[str, Any]], held: dict[str, str]) -> None:
    for worker, reason in held.items():
        say(f"not recovered: the steps of worker {worker}: {reason}")
    for spool in recovered:
        where = spool["shard"] or spool["quarantined"] or "the spool held no step"
        left = (
            f"; {spool['num_bytes_unread']:,} bytes could not be read (steps that are damaged or "
            f"were never acknowledged): they are in {spool['quarantined']}"
            if spool["num_bytes_unread"]
            else ""
        )
        steps = counted(spool["num_steps"], "step")
        say(f"recovered {steps} of {spool['worker_id']}: {where}{left}")


def _print_report(report: CheckReport) -> None:
    for violation in report.errors:
        say(f"error: {violation.rule.name}: {violation.message}")
    if commands := dict.fromkeys(each.takes_out for each in report.errors if each.takes_out):
        say("to take a file out, its rollouts with it, run in the store, and check again:")
        for command in commands:
            say(f"    {command}")
    alike: defaultdict[tuple[str, str], list[Violation]] = defaultdict(list)
    for notice in report.notices:
        alike[notice.rule.name, notice.found].append(notice)
    for first, *others in alike.values():
        more = f" (and the same in {counted(len(others), 'more file')})" if others else ""
        say(f"notice: {first.rule.name}: {first.message}{more}")
    if report.num_unverified:
        say(
            f"unverified: {report.num_unverified:,} of {counted(report.num_files, 'file')}, "
            "without a digest because another program wrote them: a flipped bit may go "
            "unnoticed"
        )
    say(
        f"{counted(report.num_step_shards, 'step shard')}, {counted(report.num_steps, 'step')}, "
        f"{counted(report.num_trajectories, 'rollout')} ({report.num_incomplete:,} incomplete): "
        f"{counted(len(report.errors), 'error')}, {counted(len(report.notices), 'notice')}"
    )
