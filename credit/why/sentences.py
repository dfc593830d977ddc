"""A decision in one sentence: what was done, what the others did there, and how it ended."""

import re
from dataclasses import replace
from urllib.parse import urlencode

from graphcredit.credit.why.decisions import ComparedDecision
from graphcredit.store.plural import counted

_WORDS = 80
"""Characters of an action or a state."""


def sentence(decision: ComparedDecision) -> str:
    """Return what a decision was, with its counterfactual and how sure that is."""
    return (
        f"Step {decision.step_index} of {_rollout(decision)}, "
        f"{coded(decision.action)}{_distance(decision)}: {_counterfactual(decision)}"
        f"{_doubt(decision)}.{_afterwards(decision)}"
    )


def in_markdown(decision: ComparedDecision) -> str:
    """Return its sentence, in which the name of the rollout is code too."""
    return sentence(replace(decision, trajectory_id=coded(decision.trajectory_id)))


def short(text: str) -> str:
    """Return the beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= _WORDS else f"{line[:_WORDS]}…"


def coded(text: str) -> str:
    """Return the beginning of a text as code of Markdown, whatever backticks it has."""
    line = short(text)
    ticks = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    space = " " if "`" in line else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def link(decision: ComparedDecision) -> str:
    """Return where the viewer shows the step, after its address."""
    selected = {
        "run": decision.run_id,
        "iteration": decision.iteration,
        "task": decision.task_id,
        "trajectory": decision.trajectory_id,
        "step": decision.step_index,
        "estimator": "reach",
    }
    return f"/trajectory?{urlencode(selected)}"


def _rollout(decision: ComparedDecision) -> str:
    """Return the rollout with its outcome; of returns, no threshold makes some of them failures."""
    if decision.is_graded:
        return f"{decision.trajectory_id} ({outcome(decision)})"
    return f"{outcome(decision)} {decision.trajectory_id}"


def outcome(decision: ComparedDecision) -> str:
    """Return how the rollout ended, as it is compared with others."""
    if decision.is_graded:
        return f"{'won, ' if decision.won else ''}earned {decision.outcome:.3g}"
    return "won" if decision.won else "failed"


def _distance(decision: ComparedDecision) -> str:
    """Return from where to where it led, counted in steps to the goal."""
    before, after = decision.goal_distance, decision.next_goal_distance
    if before is None:
        return ""
    if after is None and decision.step_index == decision.num_steps - 1:
        return f", {before:.3g} from the goal, as its last step"
    if after is None:
        return f", {before:.3g} from the goal, to where nobody won any more"
    return f", {before:.3g} → {after:.3g} from the goal"


def _counterfactual(decision: ComparedDecision) -> str:
    took = counted(decision.num_took, "rollout")
    if decision.others is None and decision.num_took == 1:
        return "no other rollout was here: nothing to compare it with"
    if decision.others is None:
        return f"all {took} that were here did so: nothing to compare it with"
    if decision.is_graded:
        return (
            f"{took} did so here and earned {decision.took:.3g} on average, "
            f"{decision.num_others} did something else and earned {decision.others:.3g}"
        )
    return (
        f"{took} did so here and {_share(decision.took)} won, "
        f"{decision.num_others} did something else and {_share(decision.others)} won"
    )


def _share(share: float) -> str:
    return "all" if share == 1 else "none" if share == 0 else f"{share:.0%}"


def trust(decision: ComparedDecision) -> str:
    """Return how far a decision can be relied on, in a few words after a sign."""
    if decision.others is None:
        return "⚠ nothing to compare it with"
    if decision.is_graded:
        return "⚠ few rollouts" if _is_of_few(decision) else "✓ several rollouts on both sides"
    return "✓ beyond chance" if _is_beyond_chance(decision) else "⚠ may be chance"


def _doubt(decision: ComparedDecision) -> str:
    """Return the interval of a difference of wins; of returns, only that there are few."""
    if decision.others is None:
        return ""
    if decision.is_graded:
        return " (of few rollouts, so it may be chance)" if _is_of_few(decision) else ""
    gap, error = gap_of(decision)
    sure = "" if _is_beyond_chance(decision) else ", so it may be chance"
    return f" ({100 * gap:+.0f} ± {200 * error:.0f} points{sure})"


def _is_of_few(decision: ComparedDecision) -> bool:
    return min(decision.num_took, decision.num_others) < 3


def _is_beyond_chance(decision: ComparedDecision) -> bool:
    gap, error = gap_of(decision)
    return abs(gap) > 2 * error


def gap_of(decision: ComparedDecision) -> tuple[float, float]:
    """Return the difference of the shares of wins, and its standard error.

    A win and a failure are added to each side (Agresti and Caffo 2000): none or all of a few is no
    certainty.
    """
    gap = variance = 0.0
    for sign, number, share in (
        (1, decision.num_took, decision.took),
        (-1, decision.num_others, decision.others or 0.0),
    ):
        chance = (number * share + 1) / (number + 2)
        gap += sign * chance
        variance += chance * (1 - chance) / (number + 2)
    return gap, variance**0.5


def _afterwards(decision: ComparedDecision) -> str:
    """Return that the rollout ended against what the sentence says; returns stand at its name."""
    gap = 0.0 if decision.others is None else decision.took - decision.others
    if decision.is_graded or not gap or (gap > 0) == decision.won:
        return ""
    end = "" if decision.won else f", ending at step {decision.num_steps - 1}"
    return f" This rollout {outcome(decision)} all the same{end}."
