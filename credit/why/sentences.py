"""A decision in one sentence: what was done, what the others did there, and how it ended."""

from itertools import takewhile
from urllib.parse import urlencode

from graphcredit.credit.why.decisions import ComparedDecision
from graphcredit.credit.why.log import ShownStep
from graphcredit.store.log_text import as_code, named, one_line
from graphcredit.store.plural import counted

LONGEST = 81
"""Most characters of an action or a state."""

_AROUND = 24
"""Characters that stay of what two actions have in common: at the start, and before they part."""


def sentence(decision: ComparedDecision) -> str:
    """Return what a decision was, with its counterfactual and how sure that is."""
    action = told_apart(decision.action, decision.instead)
    return (
        f"Step {decision.step_index} of {_rollout(decision)}: {coded(action)}. "
        f"{_counterfactual(decision)}{doubt(decision)}.{_afterwards(decision)}"
    )


def coded(text: str) -> str:
    """Return the beginning of a text as code of Markdown, whatever backticks it has."""
    return as_code(one_line(text, LONGEST))


def told_apart(text: str, other: str | None, most: int = LONGEST) -> str:
    """Return a text without what it begins with in common with another, if that hides the rest.

    Args:
        text: An action.
        other: Another one, if there is one.
        most: Characters that are shown of each.
    """
    pairs = zip(text, other or "", strict=False)
    start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    if start + _AROUND < most or text == other:
        return text
    return f"{text[:_AROUND]}…{text[max(start - _AROUND, _AROUND) :]}"


def link(step: ShownStep) -> str:
    """Return where the viewer shows a step, after its address."""
    selected = {
        "run": step.run_id,
        "iteration": step.iteration,
        "task": step.task_id,
        "trajectory": step.trajectory_id,
        "step": step.step_index,
        "estimator": "reach",
    }
    return f"/trajectory?{urlencode(selected)}"


def _rollout(decision: ComparedDecision) -> str:
    """Return the rollout with its outcome; of returns, no threshold makes some of them failures."""
    name = named(decision.trajectory_id)
    if decision.is_graded:
        return f"{name} ({outcome(decision)})"
    return f"{outcome(decision)} {name}"


def outcome(decision: ComparedDecision) -> str:
    """Return how the rollout ended, as it is compared with others."""
    if decision.is_graded:
        return f"earned {decision.outcome:.3g}"
    return "won" if decision.won else "failed"


def _counterfactual(decision: ComparedDecision) -> str:
    took = counted(decision.num_took, "rollout")
    if decision.others is None and decision.num_took == 1:
        return "No other rollout was in this state: nothing to compare it with"
    if decision.others is None:
        return f"All {took} that were in this state did so: nothing to compare it with"
    if decision.is_graded:
        ended, others = f"earned {decision.took:.3g} on average", f"earned {decision.others:.3g}"
    else:
        ended, others = f"{_share(decision.took)} won", f"{_share(decision.others)} won"
    other = told_apart(decision.instead or "", decision.action)
    instead = f", most often {coded(other)}," if other else ""
    return (
        f"From the same state, {took} did so and {ended}; "
        f"{decision.num_others} did something else{instead} and {others}"
    )


def _share(share: float) -> str:
    return "all" if share == 1 else "none" if share == 0 else f"{share:.0%}"


def trust(decision: ComparedDecision) -> str:
    """Return how far a decision can be relied on, in a few words after a sign."""
    if decision.others is None:
        return "⚠ nothing to compare it with"
    return "⚠ may be chance" if _may_be_chance(decision) else "✓ beyond chance"


def doubt(decision: ComparedDecision) -> str:
    """Return the difference of the sentence with two standard errors, and whether it is sure."""
    if decision.others is None or decision.error is None:
        return ""
    gap = decision.took - decision.others
    if decision.is_graded:
        size = f"{gap:+.3g} ± {2 * decision.error:.2g}"
    else:
        size = f"{100 * gap:+.0f} ± {200 * decision.error:.0f} points"
    if not _may_be_chance(decision):
        return f" ({size})"
    if decision.choice is not None:
        return f" ({size}; by itself it may be chance, such choices together are not)"
    return f" ({size}, {'so' if abs(gap) <= 2 * decision.error else 'yet'} it may be chance)"


def _may_be_chance(decision: ComparedDecision) -> bool:
    gap = decision.took - (decision.others or 0.0)
    return abs(gap) <= 2 * (decision.error or 0.0) or bool(decision.is_chance)


def _afterwards(decision: ComparedDecision) -> str:
    """Return that the rollout ended against what the sentence says; returns stand at its name."""
    gap = 0.0 if decision.others is None else decision.took - decision.others
    if decision.is_graded or not gap or (gap > 0) == decision.won:
        return ""
    end = "" if decision.won else f", ending at step {decision.num_steps - 1}"
    return f" This rollout {outcome(decision)} all the same{end}."
