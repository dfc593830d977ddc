"""`graphcredit why`: from a log, or a store, to the decisions that mattered, in one go."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphcredit.cli.options import AsJson, given, takes
from graphcredit.cli.output.console import interruptible, print_json, progress, say
from graphcredit.collector.importers.options import ImportOptions
from graphcredit.store.layout import MARKER_NAME, Store, open_store

if TYPE_CHECKING:
    from graphcredit.credit.audit.run import AuditReport
    from graphcredit.viewer.why.decisions import Decision


@takes({"What to make of a log": ImportOptions}, omit=("try_",))
def why(
    source: Annotated[Path, typer.Argument(help="A log, a folder of logs, or a store.")],
    keep: Annotated[
        Path | None,
        typer.Option(help="Keep the store that is made of a log; by default it is thrown away."),
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="Most decisions to show.")] = 10,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown, for a chat or a pull request.")
    ] = False,
    as_json: AsJson = False,
    **flags: Any,
) -> None:
    """Say which decisions mattered most, one sentence each, and what to distrust.

    A log is imported into a store and credited by the recommended estimator. In a store, credit
    that is missing or stale is assigned; other credit stays as it is.

    Example: graphcredit why outputs/chats.jsonl
    """
    from graphcredit.credit.audit.run import audit
    from graphcredit.viewer.why.decisions import decisions

    with _store(source, keep, ImportOptions(**given(flags))) as store:
        with interruptible("the same command again goes on"), progress("why") as show:
            _credit(store, show)
            report = audit(store, on_progress=show)
        shown = decisions(store, most=most)
        if as_json:
            print_json(_as_json(shown, report))
        else:
            _show(shown, report, markdown=markdown)
            if not markdown:
                say()
                say(
                    f"`graphcredit view {store.root}` shows them in full"
                    if keep or store.root == source
                    else "--keep STORE keeps the store, for `graphcredit view STORE`"
                )


@contextmanager
def _store(source: Path, keep: Path | None, options: ImportOptions) -> Generator[Store]:
    """Yield the store that is asked, which is made of a log."""
    from graphcredit.cli.commands.import_ import show_report
    from graphcredit.collector.importers.run import import_log

    if (source / MARKER_NAME).exists():
        yield open_store(source)
        return
    with TemporaryDirectory(prefix="graphcredit-why-") as folder:
        path = Path(folder) / "store" if keep is None else keep
        with interruptible("the same command again goes on"), progress("import") as show:
            report = import_log(source, path, options, on_progress=show)
        if not report.num_trajectories + report.num_already_there:
            show_report(report)
            raise typer.Exit(1)
        yield open_store(path)


def _credit(store: Store, show: Any) -> None:
    from graphcredit.credit.iteration.settings import settings_of
    from graphcredit.credit.options import CreditOptions
    from graphcredit.credit.stage import assign_credit

    settings = settings_of(CreditOptions())
    assign_credit(store, settings, only_new=True, on_progress=show)


def _as_json(shown: "list[Decision]", report: "AuditReport") -> dict[str, Any]:
    from graphcredit.viewer.why.sentences import link, sentence

    return {
        "decisions": [{**asdict(d), "sentence": sentence(d), "link": link(d)} for d in shown],
        "numbers": report.numbers,
        "distrust": [finding.message for finding in report.worth_a_warning],
    }


def _show(shown: "list[Decision]", report: "AuditReport", *, markdown: bool) -> None:
    from graphcredit.viewer.why.sentences import sentence, short

    mark = "## " if markdown else ""
    say(f"{mark}What mattered most")
    say()
    for number, decision in enumerate(shown, start=1):
        say(f"{number}. {sentence(decision)}")
        if not markdown:
            say(f"   in: {short(decision.state)}")
    if not shown:
        say(
            "no decision can be compared: in no group did several rollouts visit a state, do "
            "different things there, and end differently"
        )
    say()
    say(f"{mark}What to distrust")
    say()
    findings = report.worth_a_warning
    for finding in findings:
        say(f"- {finding.severity}: {finding.message}")
    if not findings:
        say("- nothing that `graphcredit audit` warns of")
    told = report.numbers.get("states as logged", {})
    if told:
        beyond = told["evidence"] - told["evidence by chance"]
        verdict = "tell" if beyond > told["two standard errors"] else "do not tell, beyond chance,"
        say(
            f"- the states {verdict} how rollouts end: evidence {beyond:.2f} ± "
            f"{told['two standard errors']:.2f}; `graphcredit evidence` compares definitions"
        )
