"""A small network from what the player sees to the four actions, and its exact success."""

import numpy as np
import torch
from torch import Tensor, nn

from experiments.episodes import Floats, Ints
from experiments.sokoban.boards import ACTIONS, Boards

HORIZON = 30
"""Steps after which an episode is cut."""
WIDTH = 128
_CHUNK = 65_536


def make_policy(num_features: int, seed: int) -> nn.Sequential:
    """Return a network with random weights, the same for the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Linear(num_features, WIDTH),
            nn.ReLU(),
            nn.Linear(WIDTH, WIDTH),
            nn.ReLU(),
            nn.Linear(WIDTH, len(ACTIONS)),
        )


def log_probabilities(policy: nn.Module, boards: Boards, positions: Ints) -> Tensor:
    """Return [len(positions), 4] log π(a | position). Refused actions may be chosen too."""
    seen = torch.from_numpy(boards.seen[positions]).float()
    return torch.log_softmax(policy(seen), dim=1)


@torch.no_grad()
def probabilities(policy: nn.Module, boards: Boards, positions: Ints) -> Floats:
    """Return [len(positions), 4] π(a | position)."""
    chunks = [
        log_probabilities(policy, boards, positions[first : first + _CHUNK]).exp().double()
        for first in range(0, len(positions), _CHUNK)
    ]
    chance = torch.cat(chunks).numpy()
    return chance / chance.sum(1, keepdims=True)


def success_of(policy: nn.Module, boards: Boards) -> Floats:
    """Return [num_boards] the exact probability to win each board within `HORIZON` steps.

    Boards and rules are deterministic, so V_t(s) = Σ_a π(a | s) V_{t+1}(s'), and V = 1 where all
    boxes are on targets.
    """
    chance = probabilities(policy, boards, np.arange(len(boards.board)))
    won = boards.is_won.astype(np.float64)
    value = won
    for _ in range(HORIZON):
        value = np.where(boards.is_won, 1.0, (chance * value[boards.target]).sum(1))
    return value[boards.start]
