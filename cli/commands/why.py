"""`graphcredit why`: from a log, or a store, to the decisions that mattered, in one go."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphcredit.cli.options import AsJson, given, takes
from graphcredit.cli.output.console import interruptible, print_json, progress, say
from graphcredit.collector.importers.options import ImportOptions
from graphcredit.store.errors import InputError
from graphcredit.store.layout import MARKER_NAME, Store, open_store
from graphcredit.store.plural import counted
from graphcredit.store.progress import OnProgress
from graphcredit.store.provenance.freshness import credit_freshness

if TYPE_CHECKING:
    from graphcredit.collector.importers.report import ImportReport
    from graphcredit.credit.audit.run import AuditReport
    from graphcredit.credit.why.decisions import ComparedDecision
    from graphcredit.credit.why.recurring import Recurring

_CLUSTERS = 5
"""Most clusters of failures to print; `--json` has all."""

_NONE_OF_ALL = (
    "in no group did several rollouts visit a state, do different things there, and end differently"
)
_NONE_OF_ONE = (
    "it has no credit, or in none of its states did another rollout of its group do something "
    "else, and end as credit says"
)


@takes({"What to make of a log": ImportOptions}, omit=("try_",))
def why(
    source: Annotated[Path, typer.Argument(help="A log, a folder of logs, or a store.")],
    keep: Annotated[
        Path | None,
        typer.Option(help="Keep the store that is made of a log; by default it is thrown away."),
    ] = None,
    trajectory: Annotated[
        str | None, typer.Option(help="Only the decisions of this rollout.", show_default=False)
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="Most decisions to show.")] = 10,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown, for a chat or a pull request.")
    ] = False,
    as_json: AsJson = False,
    **flags: Any,
) -> None:
    """Say which decisions mattered most, one sentence each, and what to distrust.

    A log is imported into a store and credited by the recommended estimator. In a store, only
    iterations without any credit get it.

    Example: graphcredit why outputs/chats.jsonl
    """
    from graphcredit.credit.audit.run import audit
    from graphcredit.credit.why.decisions import decisions
    from graphcredit.credit.why.recurring import recurring

    with _store(source, keep, ImportOptions(**given(flags))) as (store, unread):
        with interruptible("the same command again goes on"), progress("why") as show:
            _credit(store, show)
            report = audit(store, on_progress=show)
        shown = decisions(store, trajectory_id=trajectory, most=most)
        again = recurring(store) if trajectory is None else None
        if as_json:
            print_json(_as_json(shown, again, report, unread))
            return
        _show_decisions(shown, _NONE_OF_ALL if again else _NONE_OF_ONE, markdown=markdown)
        if again and again.num_failures:
            _show_recurring(again, markdown=markdown)
        _show_doubts(report, unread, markdown=markdown)
        say()
        say(
            "--keep STORE keeps the store, for `graphcredit view STORE`"
            if not keep and store.root != source
            else f"`graphcredit view {'STORE' if markdown else store.root}` shows them in full"
        )


@contextmanager
def _store(
    source: Path, keep: Path | None, options: ImportOptions
) -> Generator[tuple[Store, list[str]]]:
    """Yield the store that is asked, which is made of a log, and what of the log is not in it."""
    from graphcredit.cli.commands.import_ import show_report
    from graphcredit.collector.importers.run import import_log

    if (source / MARKER_NAME).exists():
        yield open_store(source), []
        return
    with TemporaryDirectory(prefix="graphcredit-why-") as folder:
        path = Path(folder) / "store" if keep is None else keep
        with interruptible("the same command again goes on"), progress("import") as show:
            report = import_log(source, path, options, on_progress=show)
        if not report.num_trajectories + report.num_already_there:
            show_report(report)
            raise typer.Exit(1)
        if not report.num_success + report.num_failed + report.num_truncated:
            notes = (note for note in report.notes if "without a verdict" in note)
            raise InputError(f"{source} must say how its rollouts ended: {next(notes)}")
        yield open_store(path), list(_unread(report))


def _unread(report: "ImportReport") -> Iterator[str]:
    """Yield what of a log has no part in the credit, or is a guess; `import` says more of it."""
    if report.num_bad_rows:
        bad = report.bad_rows[0]
        yield f"{counted(report.num_bad_rows, 'bad row')}, such as {bad.where}: {bad.reason}"
    if report.num_unjudged:
        yield f"{counted(report.num_unjudged, 'trajectory')} without a verdict, so without credit"
    yield from (f"left out: {number:,} × {reason}" for reason, number in report.left_out.items())
    yield from (note for note in report.notes if "--success median" in note)


def _credit(store: Store, show: OnProgress) -> None:
    """Assign credit in iterations that have none.

    Raises:
        InputError: An iteration has other credit, or stale one: how it was made is not ours to
            change.
    """
    from graphcredit.credit.iteration.settings import settings_of
    from graphcredit.credit.options import RECOMMENDED, CreditOptions
    from graphcredit.credit.stage import assign_credit

    known = {(c.run_id, c.iteration, c.estimator): c for c in credit_freshness(store)}
    credited = {place[:2] for place in known}
    for run_id in store.runs():
        for iteration in store.iterations(run_id):
            found = known.get((run_id, iteration, RECOMMENDED))
            if found is not None and found.state == "current":
                continue
            if (run_id, iteration) in credited:
                stale = f"is {found.state}: {found.reason}" if found is not None else None
                why = stale or "is of other estimators"
                raise InputError(
                    f"{store.root} must have current credit by {RECOMMENDED}: that of run "
                    f"{run_id}, iteration {iteration} {why}. Give `graphcredit credit STORE -e "
                    f"{RECOMMENDED}` with the --merge and the --state of the rest"
                )
            settings = settings_of(CreditOptions())
            assign_credit(store, settings, run_id=run_id, iteration=iteration, on_progress=show)


def _as_json(
    shown: "list[ComparedDecision]",
    again: "Recurring | None",
    report: "AuditReport",
    unread: list[str],
) -> dict[str, Any]:
    from graphcredit.credit.why.sentences import link, sentence

    return {
        "decisions": [{**asdict(d), "sentence": sentence(d), "link": link(d)} for d in shown],
        "recurring": [asdict(cluster) for cluster in again.clusters] if again else [],
        "numbers": report.numbers,
        "distrust": [*unread, *(finding.message for finding in report.worth_a_warning)],
    }


def _show_decisions(shown: "list[ComparedDecision]", why_none: str, *, markdown: bool) -> None:
    from graphcredit.credit.why.sentences import coded, in_markdown, link, sentence, short

    _head("What mattered most", markdown=markdown)
    for number, decision in enumerate(shown, start=1):
        say(f"{number}. {in_markdown(decision) if markdown else sentence(decision)}")
        place = f"{coded(decision.state)}; [in the viewer](http://127.0.0.1:8501{link(decision)})"
        say(f"   in: {place if markdown else short(decision.state)}")
    if not shown:
        say(f"no decision can be compared: {why_none}")


def _show_recurring(again: "Recurring", *, markdown: bool) -> None:
    from graphcredit.credit.why.sentences import coded

    say()
    _head("What recurs in failures", markdown=markdown)
    for cluster in again.clusters[:_CLUSTERS]:
        first = cluster.members[0]
        name = coded(first.trajectory_id) if markdown else first.trajectory_id
        say(f"- {cluster.sentence} Such as {name}, step {first.step_index}.")
    left_out = len(again.clusters) - _CLUSTERS
    more = f" Not listed: {counted(left_out, 'smaller cluster')}." if left_out > 0 else ""
    say(f"- {again.summary}{more}")


def _show_doubts(report: "AuditReport", unread: list[str], *, markdown: bool) -> None:
    say()
    _head("What to distrust", markdown=markdown)
    for line in unread:
        say(f"- {line}")
    findings = report.worth_a_warning
    for finding in findings:
        say(f"- {finding.severity}: {finding.message}")
    if not findings:
        say("- nothing that `graphcredit audit` warns of")
    told = report.numbers.get("states as logged", {})
    if told:
        beyond = told["evidence"] - told["evidence by chance"]
        verdict, remedy = "tell", "`graphcredit evidence` compares definitions"
        if beyond <= told["two standard errors"]:
            verdict = "do not tell, beyond chance,"
            remedy = (
                "`graphcredit import LOG --try 40` names the rule that tells most, and "
                "`graphcredit why LOG --state RULE` takes it; of coding agents try `worktree`"
            )
        say(
            f"- the states {verdict} how rollouts end: evidence {beyond:.2f} ± "
            f"{told['two standard errors']:.2f}; {remedy}"
        )


def _head(title: str, *, markdown: bool) -> None:
    say(f"{'## ' if markdown else ''}{title}")
    say()
