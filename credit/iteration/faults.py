"""Faults of the grouping that can be counted while a batch is credited, by check of the audit."""

import numpy as np

from graphcredit.credit.audit.thresholds import AuditThresholds
from graphcredit.credit.estimators.relative import has_spread
from graphcredit.credit.iteration.assemble import Assembly
from graphcredit.credit.iteration.columns import Columns
from graphcredit.credit.iteration.graph_tables import Edges
from graphcredit.credit.steps.arrays import Bools, Ints, factorise_pairs, sum_per_run
from graphcredit.store.schema import split_estimator_column

_LIMITS = AuditThresholds()
_ODD = np.uint64(0x9E3779B97F4A7C15)


def count_faults(
    assembly: Assembly, edges: Edges, credit: Columns
) -> tuple[dict[str, int], dict[str, int]]:
    """Count what the audit would find in a batch.

    Args:
        assembly: The batch.
        edges: Its edges.
        credit: `{column: [num_steps] values}`; NaN where an earlier run left no credit.

    Returns:
        Check to how much it affects, and what checks count to how much of it there is.
    """
    batch, group = assembly.batch, assembly.batch.group_of_trajectory
    size = np.bincount(group, minlength=batch.num_groups)
    returns = sum_per_run(assembly.steps.reward, batch.trajectory_start)
    best_lost = np.full(batch.num_groups, -np.inf)
    np.maximum.at(best_lost, group[~batch.is_success], returns[~batch.is_success])
    is_even = ~has_spread(returns, group, batch.num_groups) & (size > 1)
    squares = np.bincount(group, batch.trajectory_length**2.0, batch.num_groups)
    num_steps = np.bincount(batch.group_of_step, minlength=batch.num_groups)
    is_repeated, is_aliased = _repeated_choices(assembly, edges)
    num_incomplete = int(assembly.left_out.num_trajectories.sum())
    counts = {
        "incomplete_trajectories": num_incomplete,
        "singleton_groups": size == 1,
        "degenerate_groups": is_even & ~_has_signal(assembly, credit),
        "equal_trajectories": _num_equal(assembly),
        "different_first_states": len(group) - _num_at_usual_start(assembly).sum(),
        "unequal_step_weights": num_steps**2 < _LIMITS.min_effective_share * size * squares,
        "success_below_failure": batch.is_success & (returns < best_lost[group]),
        "success_without_reward": batch.is_success & (returns <= 0),
        "steps_alone": np.bincount(batch.state_of_step) == 1,
        "aliased_actions": is_aliased,
    }
    totals = {
        "trajectories": len(group) + num_incomplete,
        "complete trajectories": len(group),
        "successful trajectories": batch.is_success,
        "groups": batch.num_groups,
        "credited steps": batch.num_steps,
        "repeated (state, action) pairs": is_repeated,
    }
    faults, there = (
        {name: int(np.sum(number)) for name, number in of.items()} for of in (counts, totals)
    )
    return {name: number for name, number in faults.items() if number}, there


def _has_signal(assembly: Assembly, credit: Columns) -> Bools:
    """Return [num_groups] whether some estimator has an advantage that is not 0."""
    batch = assembly.batch
    has_signal = np.zeros(batch.num_groups, bool)
    for name, values in credit.items():
        if (split := split_estimator_column(name)) and split[1] == "advantage":
            has_signal[batch.group_of_step[np.abs(values) > 0]] = True
    return has_signal


def _num_at_usual_start(assembly: Assembly) -> Ints:
    """Return [num_groups] how many trajectories begin in the state in which most of them do."""
    batch = assembly.batch
    first = batch.state_of_step[batch.trajectory_start[:-1]]
    pair, group, _ = factorise_pairs(batch.group_of_trajectory, first)
    most = np.zeros(batch.num_groups, np.int64)
    np.maximum.at(most, group, np.bincount(pair, minlength=len(group)))
    return most


def _repeated_choices(assembly: Assembly, edges: Edges) -> tuple[Bools, Bools]:
    """Return which pairs of a state and an action were taken again, and led to several states."""
    source = assembly.batch.graph.source[edges.transition]
    choice, _, _ = factorise_pairs(source, edges.action)
    visits = np.bincount(edges.of_step, minlength=len(choice))
    return np.bincount(choice, visits) > 1, np.bincount(choice) > 1


def _num_equal(assembly: Assembly) -> int:
    """Count the trajectories of equal states, actions and rewards in one group, but short ones."""
    batch, steps = assembly.batch, assembly.steps
    index = np.arange(batch.num_steps) - batch.trajectory_start[batch.trajectory_of_step]
    columns = (index, steps.state, steps.action, steps.next_state, steps.reward.view(np.int64))
    mixed = np.zeros(batch.num_steps, np.uint64)
    for column in columns:
        mixed = (mixed ^ column.astype(np.uint64)) * _ODD
        mixed ^= mixed >> np.uint64(29)
    path = np.add.reduceat(mixed, batch.trajectory_start[:-1]) if batch.num_steps else mixed
    is_long = batch.trajectory_length >= _LIMITS.min_equal_steps
    _, times = np.unique(
        np.stack([batch.group_of_trajectory[is_long].astype(np.uint64), path[is_long]]),
        axis=1,
        return_counts=True,
    )
    return int(times[times > 1].sum())
