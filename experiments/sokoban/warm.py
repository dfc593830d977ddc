"""Warm starts: a network copies the policy `oracle:0.2` until it wins a quarter of the boards."""

from functools import lru_cache

import numpy as np
import torch
from torch import nn

from experiments.episodes import Floats, Ints, Rollouts
from experiments.sokoban.boards import Boards
from experiments.sokoban.play import sample
from experiments.sokoban.policy import log_probabilities, make_policy, success_of
from experiments.sokoban.settings import WARM_SUCCESS, boards_of

EPSILON = 0.2
_RATE = 1e-3
_BATCH = 256
_LOOK_EVERY = 20
_MAX_STEPS = 5_000


@lru_cache(maxsize=4)
def warm_start(size: str, number: int) -> nn.Module:
    """Return the policy of a warm start, always the same on one kind of machine; do not train it.

    Args:
        size: One of `settings.SIZES`.
        number: Seeds the weights, the demonstrations and the order of the examples.

    Raises:
        ValueError: It never wins as often as it should.
    """
    boards = boards_of(size)["training"]
    rng = np.random.default_rng([number, 3])
    every = np.arange(len(boards.names))
    shown = sample(boards, every, lambda positions: oracle(boards, positions, EPSILON), rng)
    policy = make_policy(boards.seen.shape[1], number)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=_RATE, weight_decay=0.0)
    for step in range(_MAX_STEPS):
        if step % _LOOK_EVERY == 0 and success_of(policy, boards).mean() >= WARM_SUCCESS:
            return policy
        _copy(policy, optimizer, boards, shown, rng.integers(len(shown.state), size=_BATCH))
    raise ValueError(f"{size}: warm start {number} must win {WARM_SUCCESS:.2f}, and never does")


def oracle(boards: Boards, positions: Ints, epsilon: float) -> Floats:
    """Return [len(positions), 4] probabilities: an admissible action, else one on a shortest way.

    Args:
        boards: Where to play.
        positions: [n] positions that are not won.
        epsilon: Share of random actions; at dead ends all are random.
    """
    admissible = boards.admissible[positions].astype(np.float64)
    admissible[admissible.sum(1) == 0] = 1.0  # the player is walled in: all are refused
    anywhere = admissible / admissible.sum(1, keepdims=True)
    left = boards.distance[boards.target[positions]]
    is_best = (left == left.min(1, keepdims=True)) & np.isfinite(left)
    best = np.where(is_best.any(1, keepdims=True), is_best, anywhere)
    return epsilon * anywhere + (1 - epsilon) * best / best.sum(1, keepdims=True)


def _copy(
    policy: nn.Module,
    optimizer: torch.optim.Optimizer,
    boards: Boards,
    shown: Rollouts,
    rows: Ints,
) -> None:
    every = log_probabilities(policy, boards, shown.state[rows])
    loss = -every.gather(1, torch.from_numpy(shown.action[rows])[:, None]).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
