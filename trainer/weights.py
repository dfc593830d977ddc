"""How token losses become one number: a weight for each token, known before the first forward.

With N scored tokens, S steps and K trajectories (or groups) in an optimizer batch, n_i scored
tokens in step i and n_k in trajectory k, the loss of the batch is Σ w_t · loss_t with

    token-mean       w = 1 / N
    seq-mean         w = 1 / (S n_i)      each step counts the same
    seq-sum          w = 1 / S            long responses weigh more
    dr-grpo          w = 1 / (S L)        the same with a constant length L (arXiv:2503.20783)
    trajectory-mean  w = 1 / (K n_k)      each trajectory counts the same, however long it is
    group-mean       w = 1 / (K n_k)      likewise for each task

A step is a sequence here: its response. Since a weight belongs to the whole batch, the loss does
not depend on how steps are packed or spread over processes.
"""

from typing import Literal, TypeAlias

import numpy as np

from graphcredit.trainer.arrays import Floats, Ints
from graphcredit.trainer.index import StepIndex

Aggregation: TypeAlias = Literal[
    "token-mean", "seq-mean", "seq-sum", "dr-grpo", "trajectory-mean", "group-mean"
]


def step_weights(
    index: StepIndex, steps: Ints, aggregation: Aggregation, response_length: int
) -> Floats:
    """Return the weight of every scored token of each step of an optimizer batch.

    Args:
        index: The steps.
        steps: [k] positions in the index: the whole batch.
        aggregation: What has equal weight.
        response_length: L of dr-grpo, in tokens.

    Returns:
        [k] weights. Over all scored tokens they sum to 1 in the means, to N / S in seq-sum, and to
        N / (S L) in dr-grpo.
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
            return np.full(num_steps, 1 / (num_steps * response_length))
        case "trajectory-mean":
            return _mean_of_owners(index.trajectory[steps], num_scored)
        case "group-mean":
            return _mean_of_owners(index.group[steps], num_scored)


def _mean_of_owners(owner: Ints, num_scored: Floats) -> Floats:
    owners, code = np.unique(owner, return_inverse=True)
    return 1 / (len(owners) * np.bincount(code, num_scored)[code])
