"""The trainer's policy loss and optimizer, on a network whose answers are one token long."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from experiments.episodes import Floats, Rollouts
from experiments.sokoban.boards import Boards
from experiments.sokoban.policy import log_probabilities
from graphcredit.trainer.loss.inputs import TokenInputs
from graphcredit.trainer.loss.objectives.ppo import Ppo
from graphcredit.trainer.loss.policy_loss import policy_loss
from graphcredit.trainer.options import LossOptions

BATCH = 1024
"""Steps of an optimizer step, at most."""
EPOCHS = 1
MAX_NORM = 1.0
"""Gradients are cut to this norm."""

_OBJECTIVE = Ppo()
_LOSS = LossOptions(correction="none", kl_coefficient=0.0)


@dataclass(frozen=True, kw_only=True)
class Learner:
    """A policy and its optimizer."""

    policy: nn.Module
    optimizer: torch.optim.Optimizer

    @classmethod
    def of(cls, policy: nn.Module, rate: float) -> "Learner":
        """Return a learner with AdamW, without weight decay."""
        optimizer = torch.optim.AdamW(policy.parameters(), lr=rate, weight_decay=0.0)
        return cls(policy=policy, optimizer=optimizer)

    def update(
        self, boards: Boards, episodes: Rollouts, advantage: Floats, rng: np.random.Generator
    ) -> None:
        """Learn from the steps once. Steps with advantage 0 are left out, as the trainer does.

        Args:
            boards: Where the episodes were played.
            episodes: By this policy.
            advantage: [num_steps].
            rng: Shuffles the steps.
        """
        used = np.flatnonzero(advantage)
        for _ in range(EPOCHS):
            order = rng.permutation(used)
            num_batches = -(-len(order) // BATCH)
            for rows in np.array_split(order, num_batches) if num_batches else ():
                self._step(boards, episodes, advantage, rows)

    def _step(
        self, boards: Boards, episodes: Rollouts, advantage: Floats, rows: np.ndarray
    ) -> None:
        every = log_probabilities(self.policy, boards, episodes.state[rows])
        action = torch.from_numpy(episodes.action[rows])
        tokens = _tokens(
            every.gather(1, action[:, None]).squeeze(1),
            torch.from_numpy(np.log(episodes.chance[rows])).float(),
            torch.from_numpy(advantage[rows]).float(),
        )
        result = policy_loss(tokens, _OBJECTIVE, _LOSS)
        self.optimizer.zero_grad()
        result.loss.backward()
        nn.utils.clip_grad_norm_(self.policy.parameters(), MAX_NORM)
        self.optimizer.step()


def _tokens(logprob: Tensor, old: Tensor, advantage: Tensor) -> TokenInputs:
    """Return the steps of a batch as responses of one token, of equal weight."""
    size = len(logprob)
    return TokenInputs(
        logprob=logprob,
        old=old,
        behaviour=old,
        start=None,
        reference=None,
        advantage=advantage,
        weight=torch.full((size,), 1 / size),
        is_scored=torch.ones(size, dtype=torch.bool),
        segment=torch.arange(size),
        num_segments=size,
        entropy=None,
    )
