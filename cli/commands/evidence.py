"""`graphcredit evidence`: does a state tell how rollouts end, and which definition tells most?"""

from typing import TYPE_CHECKING

from graphcredit.cli.options import AsJson, Iteration, Run, StorePath
from graphcredit.cli.output.console import interruptible, print_json, progress, say
from graphcredit.store.layout import open_store
from graphcredit.store.plural import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphcredit.credit.evidence.knowledge import Estimate
    from graphcredit.credit.evidence.report import EvidenceReport


FINER = "as good as the most evidence, with more states"


def evidence(
    store: StorePath, run: Run = None, iteration: Iteration = None, as_json: AsJson = False
) -> None:
    """Say which definition of a state tells how rollouts end, by the log alone.

    Information: at a shared state, do the rollouts that visited it too, and are still under way,
    tell the outcome? Guidance: does a step to another state tell that things got better? Both are
    correlations; ± are two standard errors. Evidence is information and twice the guidance; it
    ranks the definitions.

    Example: graphcredit evidence STORE --run games
    """
    from graphcredit.credit.evidence.judge import evidence as judge
    from graphcredit.loop.evidence_states import against_default, definitions_of
    from graphcredit.loop.used_states import used_of

    opened = open_store(store)
    definitions = definitions_of(opened, run)
    with interruptible("this changes nothing"), progress("evidence") as show:
        report = judge(opened, definitions, run_id=run, iteration=iteration, on_progress=show)
    if as_json:
        print_json(report.as_json())
        return
    used = used_of(opened, definitions).name
    _show(report, against_default(report, used, definitions[0].name))


def _show(report: "EvidenceReport", against: "Iterator[str]") -> None:
    say(report.headline())
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
    for line in (*_conclusion(report), *against):
        say(line)


def recommended(report: "EvidenceReport") -> "Iterator[str]":
    """Yield, before an import, which states tell most, and whether to believe it."""
    best = report.best or next(iter(report.knowledge))
    told = report.knowledge[best]
    part = "" if report.is_whole else "first "
    yield (
        f"in the {part}{counted(report.num_mixed, 'group')} with different outcomes, "
        f"{best} tells most of how they end: evidence {told.evidence()}"
    )
    if report.best is not None:
        yield "that is beyond chance; `graphcredit evidence STORE` compares the rules"
    else:
        need = (
            f"; about {report.groups_needed:,} groups would show it" if report.groups_needed else ""
        )
        yield f"that is not beyond chance: only credit for whole outcomes is sure{need}"
    yield from _for_graphs(report)


def _conclusion(report: "EvidenceReport") -> "Iterator[str]":
    if report.best is not None:
        most = "most evidence" if report.best == next(iter(report.knowledge)) else FINER
        yield f"{most}, and beyond chance: {report.best}"
    else:
        yield f"most evidence, but not beyond chance: {next(iter(report.knowledge))}"
        yield "What this log surely supports is credit for whole outcomes (grpo, rloo,"
        yield "discounted). What helps: more groups, more rollouts of each task,"
        yield "scores of turns (--score)"
    yield from _for_graphs(report)
    if report.groups_needed is not None:
        yield f"about {report.groups_needed:,} groups with different outcomes would show it"


def _for_graphs(report: "EvidenceReport") -> "Iterator[str]":
    """Yield which rule to take for credit by a graph, whatever has the most evidence."""
    if report.default in report.knowledge:
        company = report.knowledge[report.default].company
        yield (
            f"for a graph: {report.default}, the fixed rule for tools; {company:.0%} of the steps "
            "have company"
        )


def _shown(estimate: "Estimate") -> str:
    return f"{estimate.value:5.2f} ± {2 * estimate.error:4.2f}"
