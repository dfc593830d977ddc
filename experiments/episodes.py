"""Sampled episodes, the steps that a collector would log of them, and the credit of these steps."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphcredit.credit.estimators.table import Assigner
from graphcredit.credit.iteration.in_memory import compute
from graphcredit.store.errors import CreditWarning

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

GROUP_SIZE = 8
"""Episodes that follow each other and form a group."""

_SOME_DAY = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rollouts:
    """Steps of sampled episodes, sorted by episode and time."""

    episode: Ints
    """[num_steps] 0-based."""
    time: Ints
    """[num_steps]."""
    state: Ints
    """[num_steps] true state before the action."""
    action: Ints
    """[num_steps]."""
    chance: Floats
    """[num_steps] probability with which the action was drawn."""
    target: Ints
    """[num_steps] true state after the action."""
    is_last: Bools
    """[num_steps]."""


def roll_out(
    start: Ints,
    *,
    horizon: int,
    is_over: Bools,
    act: Callable[[Ints, Ints], tuple[Ints, Floats, Ints]],
) -> Rollouts:
    """Play episodes, all at once.

    Args:
        start: [num_episodes] first states.
        horizon: Steps after which an episode is cut.
        is_over: [num_states] whether an episode ends in a state.
        act: Takes [n] episodes and the [n] states that they are in; returns the [n] actions, the
            probabilities with which these were drawn, and the states that they lead to.
    """
    state, playing = start.copy(), np.arange(len(start))
    columns: list[tuple[np.ndarray, ...]] = []
    for time in range(horizon):
        playing = playing[~is_over[state[playing]]]
        if not len(playing):
            break
        now = state[playing]
        action, chance, target = act(playing, now)
        state[playing] = target
        columns.append((playing, np.full(len(now), time), now, action, chance, target))
    episode, times, states, actions, chances, targets = (
        np.concatenate(column) for column in zip(*columns, strict=True)
    )
    order = np.lexsort((times, episode))
    return Rollouts(
        episode=episode[order],
        time=times[order],
        state=states[order],
        action=actions[order],
        chance=chances[order],
        target=targets[order],
        is_last=np.diff(episode[order], append=-1) != 0,
    )


def step_table(
    rollouts: Rollouts,
    *,
    tasks: pa.Array,
    texts: tuple[pa.Array, pa.Array],
    actions: Sequence[str],
    admissible: Bools,
    listed: Bools | None,
    is_won: Bools,
    is_over: Bools,
    score: Floats | None = None,
) -> pa.Table:
    """Return the steps as a collector would log them.

    Args:
        rollouts: Sampled episodes.
        tasks: [num_steps] task of each step.
        texts: [num_steps] what the player reads before the action, and after it.
        actions: [num_actions] texts of the actions.
        admissible: [num_states, num_actions].
        listed: [num_steps, num_actions] what is logged as admissible; None for nothing.
        is_won: [num_states].
        is_over: [num_states].
        score: [num_states] reward of an episode that ends there; by default 1 for a win.
    """
    num_steps, words = len(rollouts.state), pa.array(actions)
    won = is_won[rollouts.target] & rollouts.is_last
    graded = is_won.astype(np.float64) if score is None else score
    ended = is_over[rollouts.target] & rollouts.is_last
    if listed is None:
        lists = pa.nulls(num_steps, pa.list_(pa.string()))
    else:
        ends = pa.array(np.concatenate([[0], listed.sum(1).cumsum()]), pa.int32())
        lists = pa.ListArray.from_arrays(ends, words.take(pa.array(np.nonzero(listed)[1])))
    columns = {
        "task_id": tasks,
        "trajectory_id": numbered("episode", rollouts.episode),
        "step_index": pa.array(rollouts.time, pa.int32()),
        "state": texts[0],
        "next_state": texts[1],
        "action": words.take(pa.array(rollouts.action)),
        "admissible_actions": lists,
        "is_action_valid": pa.array(admissible[rollouts.state, rollouts.action]),
        "reward": pa.array(np.where(rollouts.is_last, graded[rollouts.target], 0.0)),
        "cost": pa.array(np.ones(num_steps)),
        "terminated": pa.array(ended),
        "truncated": pa.array(rollouts.is_last & ~ended),
        "success": pa.array(won, mask=~rollouts.is_last),
        "worker_id": pa.repeat("w0", num_steps),
        "logged_at": pa.repeat(pa.scalar(_SOME_DAY, pa.timestamp("us", tz="UTC")), num_steps),
    }
    return pa.table(columns)


def numbered(kind: str, numbers: Ints) -> pa.Array:
    """Return names such as `task 00007`, whose order is that of their numbers."""
    return pa.array([f"{kind} {number:05d}" for number in numbers.tolist()])


def advantages(steps: pa.Table, estimators: Mapping[str, Assigner]) -> dict[str, Floats]:
    """Return the [num_steps] advantage of each estimator, as a trainer gets it.

    Args:
        steps: The steps.
        estimators: Settings by name; the estimator's name comes before a comma. Those without a
            comma share their graphs.
    """
    plain = {name: options for name, options in estimators.items() if "," not in name}
    found = _advantages(steps, plain)
    for name in estimators.keys() - plain.keys():
        (found[name],) = _advantages(steps, {name.partition(",")[0]: estimators[name]}).values()
    return {name: found[name] for name in estimators}


def _advantages(steps: pa.Table, estimators: Mapping[str, Assigner]) -> dict[str, Floats]:
    if not estimators:
        return {}
    with warnings.catch_warnings():
        # Lists that lack or say nothing are what some conditions are about.
        warnings.simplefilter("ignore", CreditWarning)
        credit = compute(steps, estimators=list(estimators.values()), on_incomplete="raise")
    return {name: credit[f"{name}_advantage"].to_numpy().astype(np.float64) for name in estimators}
