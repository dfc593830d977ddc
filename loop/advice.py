"""What to do where an iteration of a loop has taught nothing."""

from typing import TYPE_CHECKING

from graphcredit.loop.config import LoopConfig
from graphcredit.loop.summary import Summary

if TYPE_CHECKING:
    from graphcredit.credit.iteration.report import CreditReport


def what_to_do(config: LoopConfig, summary: Summary, credit: "CreditReport") -> str:
    """Return what gives a loop something to learn from.

    Args:
        config: What the loop was asked to do.
        summary: What its trajectories came to.
        credit: What the credit stage found in them.
    """
    if credit.num_degenerate_groups < credit.num_groups:
        return (
            "returns differ within groups, so the steps can be told apart: look at [train] "
            "(learning_rate, advantage, correction_low, correction_high, target_kl) and at the "
            "estimators of [credit]"
        )
    if summary.success_rate == 1:
        return (
            "every trajectory succeeded, so these tasks have nothing left to teach: take others, "
            "or harder ones, in [collect] (games, tasks, max_steps)"
        )
    return (
        "in every group all returns are equal, so trajectories cannot be told apart: in [collect] "
        f"take more or easier tasks (tasks is {config.collect.tasks}), larger groups (group_size "
        f"is {config.collect.group_size}), longer trajectories (max_steps is "
        f"{config.collect.max_steps}) or more groups where all returns are equal "
        f"(resample_degenerate is {config.collect.resample_degenerate}); begin with a model that "
        "succeeds now and then; or choose an estimator with a step part, such as graphgpo or "
        "gigpo, or an invalid_action_penalty, in [credit]"
    )
