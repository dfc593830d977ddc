"""Divergence from the reference, estimated from the sampled token alone.

With d = reference - logprob, cut to ±20, and tokens sampled from the policy π itself:

    estimator                  its mean        the mean of its gradient, as a loss
    k1 = -d                    KL(π ‖ ref)     0: it only adds noise
    k2 = d² / 2                not the KL      that of KL(π ‖ ref), exactly
    k3 = exp(d) - 1 - d ≥ 0    KL(π ‖ ref)     that of KL(ref ‖ π), the other direction

A loss differentiates the value at the token, not how often it is sampled; hence the last column.
    k3+: value of k3, gradient of k2

So k1 is for watching, k2 for the right gradient, and k3 for a value that is right and steady, with
a gradient that agrees with k2's where π is close to the reference. k3 is cut to 10, which it
reaches at d = 2.6: further up one token would pull with exp(d). Cut values have gradient 0.
k3+ joins the two: a steady value, and the right gradient; it is cut as k2 is in its gradient.
Sources: Schulman, Approximating KL Divergence, 2020; k3+: arXiv 2506.09477, which shows that k3's
gradient is not that of the divergence.
"""

import torch
from torch import Tensor

from graphcredit.trainer.loss.inputs import bounded
from graphcredit.trainer.options import KlEstimator

MAX_K3 = 10.0


def divergence(logprob: Tensor, reference: Tensor, estimator: KlEstimator) -> Tensor:
    """Return the estimate at each token, to log and to differentiate. [R], with gradient."""
    difference = bounded(reference - logprob)
    if estimator == "k1":
        return -difference
    if estimator == "k2":
        return difference.square() / 2
    value = (torch.expm1(difference) - difference).clamp(max=MAX_K3)
    if estimator == "k3":
        return value
    half_square = difference.square() / 2
    return value.detach() + half_square - half_square.detach()
