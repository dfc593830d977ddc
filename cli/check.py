"""`graphcredit check`: every rule of the format, over the whole store."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from graphcredit.store.layout import Store
    from graphcredit.store.quarantine import Quarantined
    from graphcredit.store.violations import CheckReport, Violation


def check(
    store: Annotated[Path, typer.Argument(help="The store.", show_default=False)],
    as_json: Annotated[
        bool, typer.Option("--json", help="Write the whole report as JSON.")
    ] = False,
    recover: Annotated[
        bool,
        typer.Option("--recover", help="First turn the spools of dead workers into shards."),
    ] = False,
    quarantine: Annotated[
        bool,
        typer.Option(
            "--quarantine",
            help="Move what is broken to quarantine/, keep the sound trajectories, delete nothing.",
        ),
    ] = False,
) -> None:
    """Check every rule of the store's format.

    Errors name the file and the rows, and the exit code is 1 if there is one. Notices are oddities
    that may stay. Trajectories that never ended are counted, and are no error.

    Example: graphcredit check STORE --recover
    """
    from graphcredit.store.layout import open_store

    opened = open_store(store)
    recovered = _recover(opened) if recover else []
    report, moved = _check(opened, quarantine=quarantine)
    if as_json:
        content = _as_json(report, moved) | ({"recovered": recovered} if recover else {})
        sys.stdout.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    else:
        _print_report(report, moved, recovered)
    if report.errors:
        raise typer.Exit(1)


def _recover(store: "Store") -> list[dict[str, Any]]:
    from graphcredit.collector.spool import recover_spools

    return [
        {
            "worker_id": spool.worker_id,
            "run_id": spool.run_id,
            "iteration": spool.iteration,
            "num_steps": spool.num_steps,
            "num_bytes_unread": spool.num_bytes_unread,
            "shard": None if spool.shard is None else _relative(spool.shard, store),
            "quarantined": (
                None if spool.quarantined is None else _relative(spool.quarantined, store)
            ),
        }
        for spool in recover_spools(store)
    ]


def _relative(path: Path, store: "Store") -> str:
    return path.relative_to(store.root).as_posix()


def _check(store: "Store", *, quarantine: bool) -> "tuple[CheckReport, list[Quarantined]]":
    from graphcredit.cli.console import progress_bar
    from graphcredit.store.checks import check_store
    from graphcredit.store.quarantine import quarantine_store

    with progress_bar() as bar:
        task = bar.add_task("checking iterations", total=None)

        def progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        if quarantine:
            return quarantine_store(store, progress)
        return check_store(store, progress), []


def _as_json(report: "CheckReport", moved: "list[Quarantined]") -> dict[str, Any]:
    return {
        "num_step_shards": report.num_step_shards,
        "num_steps": report.num_steps,
        "num_trajectories": report.num_trajectories,
        "num_incomplete": report.num_incomplete,
        "errors": [_violation_as_json(violation) for violation in report.errors],
        "notices": [_violation_as_json(violation) for violation in report.notices],
        "quarantined": [
            {"source": item.source, "target": item.target, "kept": item.kept} for item in moved
        ],
    }


def _violation_as_json(violation: "Violation") -> dict[str, Any]:
    return {
        "rule": violation.rule.name,
        "file": violation.file,
        "first_rows": list(violation.rows),
        "num_rows": violation.num_rows,
        "holds": violation.rule.holds,
        "found": violation.found,
        "remedy": violation.rule.remedy,
    }


def _print_report(
    report: "CheckReport", moved: "list[Quarantined]", recovered: list[dict[str, Any]]
) -> None:
    for spool in recovered:
        where = spool["shard"] or spool["quarantined"] or "nothing: it held no step"
        _print(f"recovered {spool['num_steps']:,} steps of {spool['worker_id']}: {where}")
    for item in moved:
        kept = f"; its sound trajectories are in {item.kept}" if item.kept else ""
        _print(f"moved {item.source} to {item.target}{kept}")
    for violation in report.errors:
        _print(f"error: {violation.rule.name}: {violation.message}")
    for violation, others in _alike(report.notices):
        more = f" (and the same in {others:,} more files)" if others else ""
        _print(f"notice: {violation.rule.name}: {violation.message}{more}")
    _print(
        f"{report.num_step_shards:,} step shards, {report.num_steps:,} steps, "
        f"{report.num_trajectories:,} trajectories ({report.num_incomplete:,} incomplete): "
        f"{len(report.errors):,} errors, {len(report.notices):,} notices"
    )


def _alike(notices: "tuple[Violation, ...]") -> "list[tuple[Violation, int]]":
    """Return one of each kind of notice, and how many more files have it."""
    kinds: dict[tuple[str, str], list[Violation]] = {}
    for notice in notices:
        kinds.setdefault((notice.rule.name, notice.found), []).append(notice)
    return [(same[0], len(same) - 1) for same in kinds.values()]


def _print(line: str) -> None:
    from rich.text import Text

    from graphcredit.cli.console import out
    from graphcredit.cli.plain import plain_text

    out.print(Text(plain_text(line)), soft_wrap=True)
