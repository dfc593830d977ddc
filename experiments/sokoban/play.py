"""Sample episodes on many boards at once, and give their steps the credit that a trainer gets."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import graphcredit
from experiments.sokoban.boards import ACTIONS, Boards, Bools, Floats, Ints
from experiments.sokoban.policy import HORIZON
from graphcredit.credit.estimators.table import Assigner
from graphcredit.store.errors import CreditWarning

GROUP_SIZE = 8
_TASK = "Push every box onto a target."


@dataclass(frozen=True, kw_only=True, slots=True)
class Episodes:
    """Steps of sampled episodes, sorted by episode and time."""

    episode: Ints
    """[num_steps] 0-based; `GROUP_SIZE` that follow each other are on one board."""
    time: Ints
    """[num_steps]."""
    position: Ints
    """[num_steps] before the action."""
    action: Ints
    """[num_steps]."""
    chance: Floats
    """[num_steps] probability with which the action was drawn."""
    target: Ints
    """[num_steps] position after the action."""
    is_last: Bools
    """[num_steps]."""


def sample(
    boards: Boards,
    chosen: Ints,
    policy: Callable[[Ints], Floats],
    rng: np.random.Generator,
) -> Episodes:
    """Return `GROUP_SIZE` episodes on each chosen board.

    Args:
        boards: All boards.
        chosen: [num_groups] the boards to play.
        policy: Returns the [n, 4] probabilities of the actions in n positions.
        rng: Draws the actions.
    """
    position = np.repeat(boards.start[chosen], GROUP_SIZE)
    playing = np.arange(len(position))
    columns: list[tuple[np.ndarray, ...]] = []
    for time in range(HORIZON):
        playing = playing[~boards.is_won[position[playing]]]
        if not len(playing):
            break
        now = position[playing]
        chance = policy(now)
        drawn = rng.random((len(now), 1))
        action = np.minimum((chance.cumsum(1) <= drawn).sum(1), len(ACTIONS) - 1)
        position[playing] = boards.target[now, action]
        own = chance[np.arange(len(now)), action]
        columns.append((playing, np.full(len(now), time), now, action, own, position[playing]))
    episode, times, before, actions, chances, after = (
        np.concatenate(column) for column in zip(*columns, strict=True)
    )
    order = np.lexsort((times, episode))
    return Episodes(
        episode=episode[order],
        time=times[order],
        position=before[order],
        action=actions[order],
        chance=chances[order],
        target=after[order],
        is_last=np.diff(episode[order], append=-1) != 0,
    )


def step_table(boards: Boards, episodes: Episodes, *, with_lists: bool) -> pa.Table:
    """Return the steps as a collector would log them; the state is the board's text.

    Args:
        boards: Where they were played.
        episodes: The episodes; each board is one task.
        with_lists: Whether the admissible actions are logged.
    """
    before, after = episodes.position, episodes.target
    is_won = boards.is_won[after] & episodes.is_last
    tasks = pa.array(boards.names)
    return pa.table(
        {
            "task_id": tasks.take(pa.array(boards.board[before])),
            "trajectory_id": pa.array([f"e{number:05d}" for number in episodes.episode.tolist()]),
            "step_index": pa.array(episodes.time, pa.int32()),
            "state": pa.array([boards.text[place] for place in before.tolist()]),
            "next_state": pa.array([boards.text[place] for place in after.tolist()]),
            "action": pa.array(ACTIONS).take(pa.array(episodes.action)),
            "admissible_actions": _lists(boards.admissible[before], with_lists=with_lists),
            "is_action_valid": pa.array(boards.admissible[before, episodes.action]),
            "reward": pa.array(is_won.astype(np.float64)),
            "cost": pa.array(np.ones(len(before))),
            "terminated": pa.array(is_won),
            "truncated": pa.array(episodes.is_last & ~is_won),
            "success": pa.array(is_won, mask=~episodes.is_last),
        }
    )


def advantages(
    boards: Boards, episodes: Episodes, estimator: Assigner, name: str, *, with_lists: bool
) -> Floats:
    """Return the [num_steps] column `<name>_advantage` of an estimator, as a trainer gets it."""
    steps = step_table(boards, episodes, with_lists=with_lists)
    with warnings.catch_warnings():
        # That lists are missing is what some arms are about.
        warnings.simplefilter("ignore", CreditWarning)
        found = graphcredit.compute(steps, estimators=[estimator], on_incomplete="raise")
    return found[f"{name}_advantage"].to_numpy().astype(np.float64)


def _lists(listed: Bools, *, with_lists: bool) -> pa.Array:
    kind = pa.list_(pa.string())
    if not with_lists:
        return pa.nulls(len(listed), kind)
    offsets = np.concatenate([[0], listed.sum(1).cumsum()])
    names = pa.array(ACTIONS).take(pa.array(np.nonzero(listed)[1]))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), names)
