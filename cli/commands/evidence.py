"""`graphcredit evidence`: does a state tell how rollouts end, and which definition tells most?"""

from functools import partial
from typing import TYPE_CHECKING

from graphcredit.cli.options import AsJson, Iteration, Run, StorePath
from graphcredit.cli.output.console import interruptible, print_json, progress, say
from graphcredit.store.layout import LOGGED_STATE, Store, open_store, states_name, stored_states
from graphcredit.store.plural import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphcredit.credit.evidence.definition import Definition
    from graphcredit.credit.evidence.knowledge import Estimate
    from graphcredit.credit.evidence.report import EvidenceReport

RULES = ("calls", "effects", "effects+last-tool", "results", "facts", "worktree")
"""Rules for agents that use tools, which are judged where the store has no such states yet."""

LEARNED = "--set effects"
"""What is learned adds to: what was done, and the reads without which that tells less."""


def evidence(
    store: StorePath,
    run: Run = None,
    iteration: Iteration = None,
    as_json: AsJson = False,
) -> None:
    """Say which definition of a state tells how rollouts end, by the log alone.

    Information: at a shared state, do the rollouts that visited it too, and are still under way,
    tell the outcome? Guidance: does a step to another state tell that things got better? Both are
    correlations; ± are two standard errors. Evidence is information and twice the guidance; it
    ranks the definitions.

    Example: graphcredit evidence STORE --run games
    """
    from graphcredit.credit.evidence.judge import evidence as judge

    opened = open_store(store)
    definitions = definitions_of(opened, run)
    with interruptible("this changes nothing"), progress("evidence") as show:
        report = judge(opened, definitions, run_id=run, iteration=iteration, on_progress=show)
    if as_json:
        print_json(report.as_json())
    else:
        _show(report)


def definitions_of(store: "Store", run_id: str | None) -> "list[Definition]":
    """Return what is judged: the states that a store has, by each merge, and rules for tools."""
    from graphcredit.collector.states.restate import calls_by_tool, effects_in, restated
    from graphcredit.collector.states.rows import COLUMNS
    from graphcredit.collector.states.table import learned
    from graphcredit.credit.evidence.definition import Definition, LearnedParts
    from graphcredit.credit.merging.table import MergeSettings

    merges = [MergeSettings(), MergeSettings(merge="segments")]
    names, effects = stored_states(store), effects_in(store, run_id=run_id)
    stored = [
        Definition(name=_name(state, merge.merge), state=state, merge=merge)
        for state in (LOGGED_STATE, *names)
        for merge in merges
    ]
    by_rule = [
        Definition(
            name=f"--set {rule}",
            columns=COLUMNS,
            restate=partial(restated, rule=learned(rule, effects.tools)),
        )
        for rule in RULES
        if states_name(rule) not in names
    ]
    with_reads = Definition(
        name=LEARNED,
        columns=COLUMNS,
        restate=partial(restated, rule=learned("effects", effects.tools)),
        parts=LearnedParts(
            of=partial(calls_by_tool, tools=effects.unchanging),
            name=lambda tools: f"--set effects+calls:{','.join(tools)}" if tools else LEARNED,
        ),
    )
    is_new = effects.unchanging and states_name("effects+calls") not in names
    return [*stored, *by_rule, *([with_reads] if is_new else [])]


def _name(state: str, merge: str) -> str:
    by = "" if merge == "exact" else f" --merge {merge}"
    return ("as logged" if state == LOGGED_STATE else f"--state {state}") + by


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


def _conclusion(report: "EvidenceReport") -> "Iterator[str]":
    if report.best is not None:
        yield f"most evidence, and beyond chance: {report.best}"
    else:
        yield "no definition of a state tells more than chance does. This log supports credit for"
        yield "whole outcomes (grpo, rloo, discounted). What helps: more rollouts of each task, an"
        yield "earlier iteration of the same tasks (--graph-window), scores of turns (--score)"
    if report.groups_needed is not None:
        yield f"about {report.groups_needed:,} groups with different outcomes would show it"
    if report.chosen is not None:
        yield (
            f"beyond chance, chosen on one half of the groups and seen on the other: "
            f"{_shown(report.chosen)}"
        )


def _shown(estimate: "Estimate") -> str:
    return f"{estimate.value:5.2f} ± {2 * estimate.error:4.2f}"
