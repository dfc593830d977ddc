"""`graphcredit evidence`: does a state tell how rollouts end, and which definition tells most?"""

from typing import TYPE_CHECKING

from graphcredit.cli.options import AsJson, Iteration, Run, StorePath
from graphcredit.cli.output.console import interruptible, print_json, progress, say
from graphcredit.store.layout import open_store
from graphcredit.store.plural import counted

if TYPE_CHECKING:
    from graphcredit.credit.evidence.judge import Definition, EvidenceReport
    from graphcredit.credit.evidence.knowledge import Estimate


def evidence(
    store: StorePath,
    run: Run = None,
    iteration: Iteration = None,
    as_json: AsJson = False,
) -> None:
    """Judge definitions of a state: do they tell how other rollouts end? No oracle is needed.

    Information: at a shared state, do the rollouts that visited it too, and are still under way,
    tell the outcome? Guidance: does a step to another state tell that things got better? Both are
    correlations; ± are two standard errors. Evidence is information and twice the guidance; it
    ranks the definitions.

    Example: graphcredit evidence STORE --run games
    """
    from graphcredit.credit.evidence.judge import evidence as judge

    with interruptible("this changes nothing"), progress("evidence") as show:
        report = judge(
            open_store(store), _definitions(), run_id=run, iteration=iteration, on_progress=show
        )
    if as_json:
        print_json(report.as_json())
    else:
        _show(report)


def _definitions() -> "list[Definition]":
    from graphcredit.credit.evidence.judge import Definition
    from graphcredit.credit.merging.table import MergeSettings

    return [
        Definition(name="the store's state"),
        Definition(
            name="the store's state, --merge segments", merge=MergeSettings(merge="segments")
        ),
    ]


def _show(report: "EvidenceReport") -> None:
    part = "" if report.is_whole else ", the first of the store"
    say(
        f"{counted(report.num_groups, 'group')}{part}; {report.num_mixed:,} of them with different "
        f"outcomes: {counted(report.num_rollouts, 'rollout')}, {counted(report.num_steps, 'step')}"
    )
    if not report.num_mixed:
        say("nothing to judge: in each group all rollouts ended alike")
        return
    say()
    width = max(map(len, report.knowledge))
    say(f"{'':{width}}  company  information    start middle end    guidance       evidence")
    for name, each in report.knowledge.items():
        parts = " ".join(f"{value:5.2f}" for value in each.by_part)
        say(
            f"{name:{width}}  {each.company:7.0%}  {_shown(each.information())}  {parts}  "
            f"{_shown(each.guidance())}  {_shown(each.evidence())}"
        )
    say()
    for line in _conclusion(report):
        say(line)


def _conclusion(report: "EvidenceReport") -> "list[str]":
    chosen = report.chosen
    lines: list[str] = []
    if report.best is not None:
        lines.append(f"the most evidence, beyond chance: {report.best}")
    else:
        lines.append(
            "no definition tells more than chance: this log supports credit for whole outcomes only "
            "(grpo, rloo, discounted). More rollouts of each task, an earlier iteration of the same "
            "tasks (--graph-window) or a score for each turn (--score) would help"
        )
        if report.groups_needed is not None:
            lines.append(f"about {report.groups_needed:,} groups like these would show it")
    if chosen is not None:
        lines.append(
            f"evidence beyond chance of what one half of the groups chooses, on the other half: "
            f"{_shown(chosen)}"
        )
    return lines


def _shown(estimate: "Estimate") -> str:
    return f"{estimate.value:5.2f} ± {2 * estimate.error:4.2f}"
