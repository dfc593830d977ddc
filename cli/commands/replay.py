"""`graphcredit replay`: play on from logged decisions, to measure what each was worth."""

from typing import Annotated, Any

import typer

from graphcredit.cli.options import AsJson, StorePath, given, takes
from graphcredit.cli.output.console import interruptible, print_json, progress, say
from graphcredit.collector.options import (
    PlayOnOptions,
    ReplayedOptions,
    ReplayOptions,
    SpokenOptions,
)
from graphcredit.collector.replaying.run import ReplayReport
from graphcredit.collector.replaying.run import replay as replay_store
from graphcredit.credit.audit.replays import ReplayJudgement, judge_replay
from graphcredit.store.layout import open_store
from graphcredit.store.plural import counted


@takes(
    {"Decisions": ReplayedOptions, "Play": PlayOnOptions, "Language models": SpokenOptions},
    omit={"games_dir"},
)
def replay(
    store: StorePath,
    run: Annotated[str | None, typer.Option(help="The run, if there are several.")] = None,
    iteration: Annotated[
        int | None, typer.Option(help="The iteration, if there are several.")
    ] = None,
    as_json: AsJson = False,
    **flags: Any,
) -> None:
    """Play on from logged decisions, and record Q - V of each in the store.

    Each state is made again by the logged actions and compared with the log. The policy that acted
    then plays to the end, from the state and from where the action leads. The same command again
    replays only what is missing, so it may be interrupted. Example:

        graphcredit replay STORE --num-decisions 200 --num-plays 32
    """
    opened = open_store(store)
    with interruptible("the same command again goes on"), progress("replay") as show:
        report = replay_store(
            opened,
            ReplayOptions(**given(flags)),
            run_id=run,
            iteration=iteration,
            on_progress=show,
        )
        judged = judge_replay(opened, report.run_id, report.iteration, report.settings)
    if as_json:
        summary = {**report.as_json(), "judgement": judged and judged.as_json()}
        print_json(summary)
    else:
        _show(report, judged)


def _show(report: ReplayReport, judged: ReplayJudgement | None) -> None:
    if report.differences:
        say(
            f"notice: the policy that plays on is not the one that acted: "
            f"{'; '.join(report.differences)}. The values are those of {report.policy}"
        )
    if report.num_incomplete:
        left_out = counted(report.num_incomplete, "incomplete trajectory")
        say(f"notice: {left_out} left out")
    say(
        f"{counted(report.num_replayed, 'decision')} replayed by {report.policy}, "
        f"{report.num_already_replayed:,} were there already"
    )
    if report.num_failed:
        kinds = "; ".join(f"{number:,} × {why}" for why, number in report.failures.items())
        say(
            f"{counted(report.num_failed, 'decision')} not reproducible, and left out of every "
            f"number: {kinds} (first: {report.first_failure})"
        )
    if judged is not None:
        for line in judged.lines():
            say(line)
