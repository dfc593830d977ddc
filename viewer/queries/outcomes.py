"""Words for how rollouts ended; of scores, none is a failure."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

import pyarrow as pa
import pyarrow.compute as pc


def are_graded(trajectories: pa.Table) -> bool:
    """Return whether returns of a task are scores, as `why` has it: no threshold makes failures.

    Args:
        trajectories: With `return, success`, a row for each that ended.
    """
    returns, outcomes = ({*trajectories[name].to_pylist()} for name in ("return", "success"))
    return None in outcomes or len(returns) > (1 if len(outcomes) == 1 else 2)


def well_ended(steps: pa.Table) -> set[str]:
    """Return the trajectories of a task that won; of scores, those above the mean.

    Args:
        steps: From `queries.graphs.task_steps`.
    """
    ended = steps.group_by("trajectory_id").aggregate([("succeeded", "max"), ("reward", "sum")])
    ended = ended.rename_columns(["trajectory_id", "success", "return"])
    well = ended["success"]
    if are_graded(ended):
        well = pc.greater(ended["return"], pc.mean(ended["return"]))
    return {*ended.filter(well)["trajectory_id"].to_pylist()}


def outcome(success: bool | None, *, is_graded: bool, is_ended: bool = True) -> str:
    """Return the word for how a trajectory ended; of scores, none is a failure."""
    if success:
        return "succeeded"
    if success is None and not is_ended:
        return "unfinished"
    return "ended" if is_graded or success is None else "failed"


def succeeded(those: float | None) -> str:
    """Return what follows a number of rollouts: how many won, or their share, if it is known."""
    if those is None:
        return ""
    return f", {those:,} succeeded" if isinstance(those, int) else f", {those:.0%} succeeded"
