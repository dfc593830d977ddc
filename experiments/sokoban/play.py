"""Sample episodes on many boards at once, and the steps that a collector would log of them."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from experiments import episodes
from experiments.episodes import GROUP_SIZE, Floats, Ints, Rollouts, roll_out
from experiments.sokoban.boards import ACTIONS, Boards
from experiments.sokoban.policy import HORIZON


def sample(
    boards: Boards,
    chosen: Ints,
    policy: Callable[[Ints], Floats],
    rng: np.random.Generator,
) -> Rollouts:
    """Return `GROUP_SIZE` episodes on each chosen board; a state is a position.

    Args:
        boards: All boards.
        chosen: [num_groups] the boards to play.
        policy: Returns the [n, 4] probabilities of the actions in n positions.
        rng: Draws the actions.
    """

    def act(_: Ints, now: Ints) -> tuple[Ints, Floats, Ints]:
        chance = policy(now)
        drawn = rng.random((len(now), 1))
        action = np.minimum((chance.cumsum(1) <= drawn).sum(1), len(ACTIONS) - 1)
        return action, chance[np.arange(len(now)), action], boards.target[now, action]

    start = np.repeat(boards.start[chosen], GROUP_SIZE)
    return roll_out(start, horizon=HORIZON, is_over=boards.is_won, act=act)


def step_table(boards: Boards, rollouts: Rollouts, *, with_lists: bool) -> pa.Table:
    """Return the steps as a table; the state is the board's text, and each board is a task.

    Args:
        boards: Where they were played.
        rollouts: The episodes.
        with_lists: Whether the admissible actions are logged.
    """
    before, after = rollouts.state, rollouts.target
    return episodes.step_table(
        rollouts,
        tasks=pa.array(boards.names).take(pa.array(boards.board[before])),
        texts=(
            pa.array([boards.text[position] for position in before.tolist()]),
            pa.array([boards.text[position] for position in after.tolist()]),
        ),
        actions=ACTIONS,
        admissible=boards.admissible,
        listed=boards.admissible[before] if with_lists else None,
        is_won=boards.is_won,
        is_over=boards.is_won,
    )
