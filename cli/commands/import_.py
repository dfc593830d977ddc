"""`graphcredit import`: turn the log of another program into a store."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from graphcredit.cli.commands.evidence import recommended
from graphcredit.cli.options import AsJson, given, takes
from graphcredit.cli.output.console import complain, interruptible, print_json, progress, say
from graphcredit.cli.parameters import Argument, Option
from graphcredit.collector.importers.options import ImportOptions
from graphcredit.store.plural import counted

if TYPE_CHECKING:
    from graphcredit.collector.importers.preview import Preview
    from graphcredit.collector.importers.report import BadRow, ImportReport
    from graphcredit.credit.evidence.report import EvidenceReport

_SHOWN = 10
"""Bad rows and other files that are named."""

_LEAST_GROUPS = 4
"""Groups with different outcomes that are asked which states tell how they end."""

_SHOWN_CHARACTERS = 300
"""Characters of a sample's column."""


@takes({"What to make of it": ImportOptions}, names={"try_": "--try"})
def import_(
    source: Annotated[Path, Argument(help="A log, or a folder of logs.")],
    store: Annotated[
        Path | None, Argument(help="The store; made where there is none. --try leaves it alone.")
    ] = None,
    engine: Annotated[
        str,
        Option(
            help="Who reads the log: local:N for N processes, ray:ADDRESS for machines that see it "
            "under the same path. By default a process per core, but at most 4, if it is large. "
            "The store becomes the same."
        ),
    ] = "local",
    as_json: AsJson = False,
    **flags: Any,
) -> None:
    """Make a store of the log of another program.

    The format is recognised. The same command again adds only what is new, so it may be
    interrupted. The exit code is 1 if a row or an image could not be read, if the store has a
    rollout with other values, or if there is no rollout.

    Example:
        graphcredit import outputs/traces.jsonl STORE --state window:2
    """
    options = ImportOptions(**given(flags))
    if options.try_ is not None:
        report = _preview(source, options, options.try_, as_json=as_json)
    else:
        report = _import(source, store, options, engine)
        if as_json:
            print_json(report.as_json())
        else:
            show_report(report)
    is_whole = not (report.num_bad_rows or report.num_bad_images or report.num_different)
    if not (is_whole and report.num_trajectories + report.num_already_there):
        raise SystemExit(1)


def _import(
    source: Path, store: Path | None, options: ImportOptions, engine: str
) -> "ImportReport":
    from graphcredit.collector.importers.run import import_log

    if store is None:
        raise click.UsageError("STORE must be named, except with --try N")
    with interruptible("the same command again goes on"), progress("import") as show:
        return import_log(source, store, options, engine=engine, on_progress=show)


def _preview(source: Path, options: ImportOptions, number: int, *, as_json: bool) -> "ImportReport":
    from graphcredit.collector.importers.preview import preview_log

    preview = preview_log(source, options, number)
    told = _evidence(preview, options.state) if preview.step else None
    if as_json:
        sample = {"task_id": preview.task_id, "trajectory_id": preview.trajectory_id}
        print_json(
            {
                **preview.report.as_json(),
                "num_states": preview.num_states,
                "num_shared_states": preview.num_shared_states,
                "num_lonely_steps": preview.num_lonely_steps,
                "evidence": told.as_json() if told else None,
                "sample": {**sample, **preview.step},
            }
        )
    else:
        show_preview(preview, options.state, told)
    return preview.report


def _evidence(preview: "Preview", state: str) -> "EvidenceReport | None":
    """Return which states tell how rollouts end, as the first trajectories of a log have it."""
    from graphcredit.credit.evidence.judge import count_mixed, evidence_in
    from graphcredit.loop.evidence_states import definitions_by

    steps = preview.sampled
    if count_mixed(steps) < _LEAST_GROUPS:
        return None
    return evidence_in(steps, definitions_by(state, steps), is_whole=preview.is_whole)


def show_report(report: "ImportReport") -> None:
    """Print what was made, then everything that was left out or refused."""
    say(report.headline())
    if report.num_different:
        say(
            f"not imported: {counted(report.num_different, 'rollout')} that the store has with "
            f"other values of {', '.join(report.different_columns)}. Nothing was changed: the log "
            "was imported before with other options, or has changed. Use a new store, or another "
            f"--run. For example, {report.difference}"
        )
    _show_counts(report)


def show_preview(preview: "Preview", state: str, told: "EvidenceReport | None" = None) -> None:
    """Print what the first trajectories would become, and which states tell how they end."""
    report = preview.report
    first = "the first " if preview.is_begin else ""
    number = counted(report.num_trajectories, "rollout")
    say(f"{first}{number} would be imported like this; nothing was written")
    _show_counts(report)
    if not preview.step:
        return
    share = preview.num_lonely_steps / max(report.num_steps, 1)
    say(
        f"{counted(preview.num_states, 'state')}, {preview.num_shared_states:,} of them shared by "
        f"rollouts of a group; {share:.0%} of the steps are alone in their state"
    )
    if told is not None:
        from graphcredit.loop.evidence_states import against_default

        used = f"--state {state}"
        for line in (*recommended(told), *against_default(told, used, used)):
            say(line)
    largest = ", ".join(f"{task} ({size:,})" for task, size in preview.largest_groups)
    say(f"largest groups: {largest}")
    say(f"a step of {preview.trajectory_id}:")
    for name, value in preview.step.items():
        if value is not None:
            say(f"    {name}: {_short(value)}")


def _short(value: object) -> str:
    if isinstance(value, list):
        return f"{len(value):,} values"
    text = value if isinstance(value, str) else json.dumps(value)
    more = f"… ({len(text):,} characters)" if len(text) > _SHOWN_CHARACTERS else ""
    return text[:_SHOWN_CHARACTERS] + more


def _tokens(report: "ImportReport") -> str:
    """Return how many steps have tokens, and why others have none."""
    has, num_logprobs = report.num_with_tokens, report.num_with_logprobs
    bare = f" ({has - num_logprobs:,} without log-probabilities)" * (num_logprobs < has)
    reasons = [f"{number:,} × {reason}" for reason, number in report.without_tokens.items()]
    return "; ".join([f"{has:,} with tokens{bare}", *reasons])


def _show_counts(report: "ImportReport") -> None:
    files = ", ".join(f"{counted(n, 'file')} of {name}" for name, n in report.num_files.items())
    say(f"{counted(report.num_records, 'record')} read from {files or 'no file'}")
    say(
        f"{counted(report.num_groups, 'group')}, {report.num_single_groups:,} with one rollout; "
        f"{counted(report.num_steps, 'step')}, {_tokens(report)}"
    )
    if report.num_images:
        say(f"{counted(report.num_images, 'image')} in their messages")
    unjudged = f", {report.num_unjudged:,} without a verdict" * bool(report.num_unjudged)
    by_return = f"{report.num_by_return:,} compared by their returns" * bool(report.num_by_return)
    judged = report.num_success + report.num_failed + report.num_truncated
    ended = f"{report.num_success:,} succeeded, {report.num_failed:,} failed, "
    ended += f"{report.num_truncated:,} truncated"
    say(", ".join(filter(None, (ended * bool(judged or not by_return), by_return))) + unjudged)
    for note in report.notes:
        say(f"note: {note}")
    for reason, number in report.left_out.items():
        say(f"left out: {number:,} × {reason}")
    if others := report.other_files:
        more = f" and {len(others) - _SHOWN:,} more" if len(others) > _SHOWN else ""
        say(f"not logs: {', '.join(others[:_SHOWN])}{more}")
    _show_bad(report.bad_rows, report.num_bad_rows, "bad", "bad row", "imported")
    _show_bad(report.bad_images, report.num_bad_images, "bad image", "bad image", "kept")


def _show_bad(rows: "list[BadRow]", number: int, what: str, noun: str, done: str) -> None:
    places: dict[str, list[str]] = {}
    for bad in rows:
        places.setdefault(bad.reason, []).append(bad.where)
    shown = list(places.items())[:_SHOWN]
    for reason, where in shown:
        more = f" and {len(where) - 1:,} more" if len(where) > 1 else ""
        complain(f"{what}: {where[0]}{more}: {reason}")
    if number:
        unnamed = number - sum(len(where) for _, where in shown)
        more = f"; {unnamed:,} of them not named here: --json names 100" if unnamed else ""
        say(f"{counted(number, noun)}, not {done}{more}")
