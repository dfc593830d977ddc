"""The lines of `graphcredit why`."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from graphcredit.credit.why.decisions import ComparedDecision
from graphcredit.credit.why.finding_words import words
from graphcredit.credit.why.findings import Finding, Findings
from graphcredit.credit.why.pooled import PooledDecision
from graphcredit.credit.why.report import WhyReport
from graphcredit.credit.why.sentences import LONGEST, coded, link
from graphcredit.loop.used_states import UsedStates
from graphcredit.store.log_text import one_line
from graphcredit.store.plural import counted

_NONE_OF_ONE = (
    "no decision can be compared: it has no credit, or in none of its states did another rollout "
    "of its task do something else, and end as credit says"
)


def lines(report: WhyReport, states: UsedStates, *, markdown: bool) -> Iterator[str]:
    """Yield what a store tells: first why there is little, then what is sure."""
    if report.reason:
        yield f"{report.reason[0].upper()}{report.reason[1:]}."
        yield ""
    if not report.findings.reason:
        yield from _findings(report.findings, markdown=markdown)
    if report.ranked.num_compared:
        yield from _decisions(report, states, markdown=markdown)


def lines_of_one(shown: list[ComparedDecision], *, markdown: bool) -> Iterator[str]:
    """Yield the decisions of one rollout."""
    yield from heading("What mattered most", markdown=markdown)
    yield from _numbered(shown, markdown=markdown)
    if not shown:
        yield _NONE_OF_ONE
    yield ""


def heading(title: str, *, markdown: bool) -> Iterator[str]:
    """Yield a heading."""
    yield f"{'## ' if markdown else ''}{title}"
    yield ""


def as_json(
    report: WhyReport | None, shown: Iterable[ComparedDecision], states: UsedStates
) -> dict[str, Any]:
    """Return everything, for programs; without a report, of one rollout."""
    told: dict[str, Any] = {"decisions": list(map(_as_json, shown)), "states": asdict(states)}
    if report is None:
        return told
    found = report.findings
    return {
        "reason": report.reason,
        "findings": list(map(_as_json, found.findings)),
        "nearest": None if found.nearest is None else _as_json(found.nearest),
        "num_patterns": found.num_patterns,
        "pooled": list(map(_as_json, report.pooled)),
        "num_sure": report.ranked.num_sure,
        "num_compared": report.ranked.num_compared,
        **told,
    }


def _as_json(each: Finding | PooledDecision | ComparedDecision) -> dict[str, Any]:
    return asdict(each) | {"sentence": words(each), "link": link(each)}


def _findings(found: Findings, *, markdown: bool) -> Iterator[str]:
    title = "What goes with low returns" if found.is_graded else "What failures do that wins do not"
    yield from heading(title, markdown=markdown)
    for number, each in enumerate(found.findings, start=1):
        yield f"{number}. {each.kind.capitalize()}: {words(each, markdown=markdown)}"
    yield (
        f"{'Nothing is beyond chance' if not found.findings else 'Each is beyond chance'}: "
        f"{counted(found.num_rollouts, 'rollout')} of {_tasks(found)}, "
        f"{_ended(found)}; {counted(found.num_patterns, 'pattern')} of what they did compared "
        f"{_where(found)}."
    )
    if found.nearest is not None:
        nearest = words(found.nearest, markdown=markdown)
        yield f"Nearest comes, and may be chance: {nearest}"
    yield ""


def _ended(found: Findings) -> str:
    if found.is_graded:
        return "compared by their returns"
    never = f", none in {counted(found.num_never_won, _unit(found))}" if found.num_never_won else ""
    return f"{found.num_won} won{never}"


def _unit(found: Findings) -> str:
    return "task" if found.num_tasks == found.num_groups else "group"


def _tasks(found: Findings) -> str:
    tasks = counted(found.num_tasks, "task")
    if found.num_tasks == found.num_groups:
        return tasks
    return f"{tasks}, in {found.num_groups:,} groups (a task in one run and iteration)"


def _where(found: Findings) -> str:
    """Return among which rollouts patterns are compared."""
    mixed = f"{found.num_mixed:,} ended both ways ({counted(found.num_in_mixed, 'rollout')})"
    if found.is_across_tasks:
        return f"over all {_unit(found)}s, of which {mixed}"
    within = f"within {_unit(found)}s"
    return within if found.num_mixed == found.num_groups else f"{within}, of which {mixed}"


def _decisions(report: WhyReport, states: UsedStates, *, markdown: bool) -> Iterator[str]:
    yield from heading("Which decisions mattered most", markdown=markdown)
    yield f"Rollouts of a task are in the same state when {states.meaning}."
    yield ""
    for each in report.pooled:
        yield f"- {words(each, markdown=markdown)}"
    yield from [""] * (markdown and bool(report.pooled))
    ranked = report.ranked
    more = "; `--most N` shows more" if len(ranked.decisions) < ranked.num_compared else ""
    number, total = ranked.num_sure or "none", counted(ranked.num_compared, "single decision")
    are = "are" if ranked.num_sure > 1 else "is"
    first = ", first those of a choice above" * (ranked.decisions[0].choice is not None)
    nearest = "" if ranked.num_sure else f"; nearest come{first}"
    yield f"{f'{number}'.capitalize()} of {total} {are} beyond chance{more}{nearest}:"
    yield from [""] * markdown
    yield from _numbered(ranked.decisions, markdown=markdown)
    yield ""


def _numbered(shown: list[ComparedDecision], *, markdown: bool) -> Iterator[str]:
    for number, each in enumerate(shown, start=1):
        yield f"{number}. {words(each, markdown=markdown)}"
        place = f"{coded(each.state)}; [in the viewer](http://127.0.0.1:8501{link(each)})"
        yield f"   state: {place if markdown else one_line(each.state, LONGEST)}"
