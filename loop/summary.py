"""Statistics of an iteration's trajectories, and advice where nothing can be learnt from them."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphcredit.loop.config import LoopConfig
from graphcredit.store import Store, read_steps
from graphcredit.store.errors import InputError
from graphcredit.store.files.parse import parse_object

if TYPE_CHECKING:
    from graphcredit.credit.iteration.report import CreditReport

_COLUMNS = (
    "task_id",
    "trajectory_id",
    "step_index",
    "reward",
    "is_action_valid",
    "success",
    "extra",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """Statistics of the complete trajectories of some tasks in one iteration of a run."""

    num_trajectories: int
    """Number of complete trajectories."""
    num_env_steps: int
    """Environment steps; a prefix that branches of a tree share counts once."""
    success_rate: float
    """Share of trajectories that accomplished their task."""
    mean_return: float
    """Mean sum of rewards of a trajectory."""
    mean_length: float
    """Mean number of steps of a trajectory."""
    valid_share: float
    """Share of steps whose action was valid."""


def summarise(
    store: Store, run_id: str, iteration: int, task_ids: Collection[str] | None = None
) -> Summary:
    """Return statistics of the complete trajectories.

    Trajectories that a dead worker left unfinished do not count: they were played again.

    Raises:
        InputError: There is no complete trajectory.
    """
    import polars as pl

    tables = read_steps(store, columns=_COLUMNS, run_id=run_id, iteration=iteration)
    steps = pl.concat([pl.DataFrame(table) for table in tables])
    if task_ids is not None:
        steps = steps.filter(pl.col("task_id").is_in(list(task_ids)))
    steps = steps.filter(pl.col("success").is_not_null().any().over("trajectory_id"))
    successes = steps["success"].drop_nulls().to_list()
    if not successes:
        raise InputError(
            f"{store.root} must have complete rollouts of run {run_id!r}, iteration "
            f"{iteration}: found none"
        )
    extras = steps.filter(pl.col("step_index") == 0)["extra"].drop_nulls().to_list()
    return Summary(
        num_trajectories=len(successes),
        num_env_steps=len(steps) - sum(map(_num_shared, extras)),
        success_rate=sum(successes) / len(successes),
        mean_return=sum(steps["reward"].to_list()) / len(successes),
        mean_length=len(steps) / len(successes),
        valid_share=sum(steps["is_action_valid"].to_list()) / len(steps),
    )


def _num_shared(extra: str) -> int:
    """Return how many steps a trajectory shares with another, given its first step's `extra`."""
    return parse_object(extra).get("shared_steps", 0)


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
            "every rollout succeeded, so there is nothing left to learn from these tasks: "
            "choose others, or harder ones, in [collect] (games, tasks, max_steps)"
        )
    return (
        "in every group all returns are equal, so rollouts cannot be told apart: in [collect] "
        f"choose more or easier tasks (tasks is {config.collect.tasks}), larger groups (group_size "
        f"is {config.collect.group_size}) or longer rollouts (max_steps is "
        f"{config.collect.max_steps}); start from a model that succeeds sometimes; or choose an "
        "estimator that learns from such groups too, such as reach, "
        "or an invalid_action_penalty, in [credit]"
    )
