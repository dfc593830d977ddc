"""Advice for an iteration of a loop in which the policy could not learn anything."""

from typing import TYPE_CHECKING

from graphcredit.loop.config import LoopConfig
from graphcredit.loop.summary import Summary

if TYPE_CHECKING:
    from graphcredit.credit.iteration.report import CreditReport


def what_to_do(config: LoopConfig, summary: Summary, credit: "CreditReport") -> str:
    """Return a sentence that says which options to change, so that there is something to learn."""
    if credit.num_degenerate_groups < credit.num_groups:
        return (
            "returns differ within groups, so the steps can be told apart: look at [train] "
            "(learning_rate, advantage, correction) and at the "
            "estimators of [credit]"
        )
    if summary.success_rate == 1:
        return (
            "every trajectory succeeded, so there is nothing left to learn from these tasks: "
            "choose others, or harder ones, in [collect] (games, tasks, max_steps)"
        )
    return (
        "in every group all returns are equal, so trajectories cannot be told apart: in [collect] "
        f"choose more or easier tasks (tasks is {config.collect.tasks}), larger groups (group_size "
        f"is {config.collect.group_size}) or longer trajectories (max_steps is "
        f"{config.collect.max_steps}); start from a model that succeeds sometimes; or choose an "
        "estimator that learns from such groups too, such as reach, "
        "or an invalid_action_penalty, in [credit]"
    )
