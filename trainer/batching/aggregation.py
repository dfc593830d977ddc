"""Aggregation of token losses: a weight for each token, known before the first forward pass.

With N scored tokens and S steps in an optimizer batch, n_i scored tokens in step i, and K
trajectories (or groups) of n_k scored tokens in an epoch of U optimizer steps, the loss of the
batch is Σ w_t · loss_t with

    token-mean       w = 1 / N
    seq-mean         w = 1 / (S n_i)      each step counts the same
    seq-sum          w = 1 / S            long responses weigh more
    dr-grpo          w = 1 / (S L)        the same with a constant L = 512 (arXiv:2503.20783)
    trajectory-mean  w = U / (K n_k)      each trajectory counts the same, however long it is
    group-mean       w = U / (K n_k)      likewise for each task

A step is a sequence here: its response. Steps are shuffled one by one, so most trajectories are
spread over several batches, the long ones over more of them. To count the same, a trajectory needs
its n_k and K from the whole epoch: divided by those of each batch, 50 steps would outweigh 5 by as
many times as more batches have one of them. The weights of a batch then sum to 1 on average over
the epoch's batches, and exactly where there is one. Since a weight does not depend on where its
token is, neither does the loss depend on how steps are packed or spread over processes.
"""

import numpy as np

from graphcredit.trainer.data.ragged import Floats, Ints
from graphcredit.trainer.data.step_index import StepIndex
from graphcredit.trainer.options import Aggregation

RESPONSE_LENGTH = 512
"""L of dr-grpo, in tokens: it scales the loss, and with it what gradients are clipped to."""


def step_weights(
    index: StepIndex, steps: Ints, aggregation: Aggregation, *, num_updates: int
) -> Floats:
    """Return the weight of every scored token of each step of an optimizer batch.

    Args:
        index: The steps of an epoch.
        steps: [k] positions in the index: the whole batch.
        aggregation: Unit that has equal weight.
        num_updates: U, batches of an epoch.

    Returns:
        [k] weights. Over the scored tokens of the batch they sum to 1 in token-mean and seq-mean,
        to N / S in seq-sum, and to N / (S L) in dr-grpo; over those of the epoch to U in
        trajectory-mean and group-mean.
    """
    num_scored = index.num_scored[steps].astype(np.float64)
    num_steps = len(steps)
    match aggregation:
        case "token-mean":
            return np.full(num_steps, 1 / num_scored.sum())
        case "seq-mean":
            return 1 / (num_steps * num_scored)
        case "seq-sum":
            return np.full(num_steps, 1 / num_steps)
        case "dr-grpo":
            return np.full(num_steps, 1 / (num_steps * RESPONSE_LENGTH))
        case "trajectory-mean":
            return num_updates * _equal_shares(index, index.trajectory, steps)
        case "group-mean":
            return num_updates * _equal_shares(index, index.group, steps)


def _equal_shares(index: StepIndex, owner: Ints, steps: Ints) -> Floats:
    """Return [k] the weight that lets the tokens of each of K owners sum to 1 / K in an epoch."""
    num_tokens = np.bincount(owner, index.num_scored)
    return 1 / (np.count_nonzero(num_tokens) * num_tokens[owner[steps]])
