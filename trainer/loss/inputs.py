"""Inputs and outputs of an objective, for one micro-batch."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

MAX_LOG_RATIO = 20.0
"""Differences of log-probabilities are cut to ±20: exp(20) is 5e8, and exp(89) is not a float32."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenInputs:
    """The R response tokens of a micro-batch, in segments: a segment is the response of one step.

    Only `logprob` and `entropy` carry a gradient.
    """

    logprob: Tensor
    """[R] float32, log-probability under the policy that is being trained."""
    old: Tensor
    """[R] float32, under the policy that ratios are taken against."""
    behaviour: Tensor
    """[R] float32, under the policy that sampled the token, as it was logged."""
    start: Tensor | None
    """[R] float32, under the weights at the start, as the trainer computes it; None if unknown."""
    reference: Tensor | None
    """[R] float32, under the frozen reference; None without one."""
    advantage: Tensor
    """[R] float32, advantage of the token's step."""
    weight: Tensor
    """[R] float32, share of the token in the loss; 0 if it has none, and in a dummy micro-batch."""
    is_scored: Tensor
    """[R] bool, whether the token enters the loss."""
    segment: Tensor
    """[R] int64, the token's segment, in 0 … num_segments-1."""
    num_segments: int
    """Number of segments; some may have no token."""
    entropy: Tensor | None
    """[R] float32, entropy of the policy where it sampled the token, in nats; or None."""

    def scored(self) -> "TokenInputs":
        """Return the tokens that enter the loss; segments keep their numbers.

        The others are left out rather than multiplied by 0: a NaN among them reaches no sum, and
        their gradient is exactly 0. A micro-batch with none gives [0] arrays, still on the graph.
        """
        kept = torch.nonzero(self.is_scored & (self.weight > 0)).squeeze(1)
        return TokenInputs(
            logprob=self.logprob[kept],
            old=self.old[kept],
            behaviour=self.behaviour[kept],
            start=None if self.start is None else self.start[kept],
            reference=None if self.reference is None else self.reference[kept],
            advantage=self.advantage[kept],
            weight=self.weight[kept],
            is_scored=self.is_scored[kept],
            segment=self.segment[kept],
            num_segments=self.num_segments,
            entropy=None if self.entropy is None else self.entropy[kept],
        )

    def log_ratio(self) -> Tensor:
        """Return log r = logprob - old, cut to ±20. [R], with gradient."""
        return bounded(self.logprob - self.old)


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyTerms:
    """An objective's loss and ratio of each token."""

    loss: Tensor
    """[R] loss of each token, to be minimised; not weighted, not corrected; with gradient."""
    ratio: Tensor
    """[R] ratio of new to old policy that the objective used; without gradient."""
    stats: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])
    """Name to [R] values whose mean over tokens is worth a look: where a clip was active."""


def bounded(log_ratio: Tensor) -> Tensor:
    """Return differences of log-probabilities, cut to ±20; beyond it their gradient is 0."""
    return log_ratio.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
