"""Findings and pooled decisions in a sentence: how many, how they ended, how sure that is."""

from dataclasses import replace

from graphcredit.credit.why.decisions import ComparedDecision
from graphcredit.credit.why.findings import Finding
from graphcredit.credit.why.pooled import PooledDecision
from graphcredit.credit.why.sentences import coded, sentence
from graphcredit.store.log_text import as_code, named
from graphcredit.store.plural import counted


def finding_sentence(finding: Finding) -> str:
    """Return a finding with its counts, its effect ± two standard errors, and an example."""
    also = f" They also {finding.also}." if finding.also else ""
    return f"{_counts(finding)}{also} {_effect(finding)}{_halves(finding)} {_example(finding)}"


def _counts(finding: Finding) -> str:
    among = f"Of those that {finding.among}, " if finding.among else ""
    if finding.is_graded:
        return (
            f"{among}{counted(finding.num_with, 'rollout')} {finding.words} and earned "
            f"{finding.mean_with:.3g} on average; {finding.num_without:,} did not do so and earned "
            f"{finding.mean_without:.3g}."
        )
    won_with = round(finding.num_with * finding.mean_with)
    won = won_with + round(finding.num_without * finding.mean_without)
    failed = finding.num_with + finding.num_without - won
    return (
        f"{among}{_of(finding.num_with - won_with, failed)} failed rollouts {finding.words}, and "
        f"{_of(won_with, won)} that won."
    )


def _of(number: int, total: int) -> str:
    some = f"{number:,}" if number else "none"
    return f"all {total:,}" if number == total else f"{some} of {total:,}"


def _effect(finding: Finding) -> str:
    unit, scale = ("", 1.0) if finding.is_graded else (" percentage points", 100.0)
    size = f"{scale * -finding.effect:.3g} ± {2 * scale * finding.error:.2g}{unit}"
    if not finding.is_graded:
        size = f"{scale * -finding.effect:.0f} ± {2 * scale * finding.error:.0f}{unit}"
    ended = f"earned {size} less" if finding.is_graded else f"won {size} less often"
    if finding.is_across_tasks:
        runs = ", each run by itself" if finding.is_by_run else ""
        cause = "harder tasks may be the cause"
        return f"Over all tasks{runs}, they {ended} than the others; {cause}."
    tasks = counted(finding.num_tasks, "task")
    easier = "" if finding.mean_with < finding.mean_without else ", but had easier tasks"
    return f"Within a task, they {ended} than the others ({tasks} compared){easier}."


def _halves(finding: Finding) -> str:
    if finding.holds is None:
        return ""
    if finding.holds:
        return " Each half of the tasks shows it by itself."
    return " One half of the tasks alone does not show it."


def _example(finding: Finding) -> str:
    step = f"{finding.shown_by} {finding.step_index}: {coded(finding.action)}"
    return f"Such as {named(finding.trajectory_id)}, {step}."


def pooled_counts(decision: PooledDecision) -> str:
    """Return a choice that recurs, with its counts and its effect ± two errors."""
    places = f"{counted(decision.num_states, 'state')} of {counted(decision.num_tasks, 'task')}"
    if decision.is_graded:
        ended = f"earned {decision.took:.3g} on average, and {decision.others:.3g}"
        size = f"{decision.effect:+.3g} ± {2 * decision.error:.2g}"
    else:
        ended = f"won {decision.took:.0%} of the time, and {decision.others:.0%}"
        size = f"{100 * decision.effect:+.0f} ± {200 * decision.error:.0f} points"
    return (
        f"In {places}, some rollouts {decision.words} and others did not: those that did "
        f"({counted(decision.num_took, 'time')}) {ended} after something else "
        f"({counted(decision.num_others, 'time')}); from the same state, {size}."
    )


def words(told: Finding | PooledDecision | ComparedDecision, *, markdown: bool = False) -> str:
    """Return the sentence of anything that `why` tells; in Markdown, the rollout's name is code."""
    shown = replace(told, trajectory_id=as_code(told.trajectory_id)) if markdown else told
    if isinstance(shown, Finding):
        return finding_sentence(shown)
    if isinstance(shown, ComparedDecision):
        return sentence(shown)
    step = f"{named(shown.trajectory_id)}, step {shown.step_index}: {coded(shown.action)}"
    return f"{pooled_counts(shown)} Such as {step}."
