"""The soft gate: a ratio loses its weight smoothly as it leaves 1, instead of at a clip."""

from dataclasses import dataclass

import torch

from graphcredit.store.options import Positive
from graphcredit.trainer.loss.inputs import PolicyTerms, TokenInputs


@dataclass(frozen=True, kw_only=True, slots=True)
class SoftGate:
    """The surrogate through a sigmoid around r = 1.

        r = exp(logprob - old)
        τ = τ_positive where A > 0, else τ_negative
        loss = -(4 / τ) σ(τ (r - 1)) A

    Its gradient is that of -r A times 4 σ (1 - σ): 1 at r = 1, and less on both sides, whatever the
    sign of A. A larger τ narrows the gate. Tokens of negative advantages get the narrower one: they
    raise the logits of all other tokens, and so are the less stable. log r is cut to ±20. The value
    at r = 1 is -2 A / τ; only the gradient has a meaning.
    Source: Soft Adaptive Policy Optimization, arXiv 2511.20347. It is called SAPO there,
    which is the name of an estimator here.
    """

    temperature_positive: Positive = 1.0
    """τ_positive."""
    temperature_negative: Positive = 1.05
    """τ_negative."""

    def terms(self, tokens: TokenInputs) -> PolicyTerms:
        """Return the loss of each token, and the weight that its gate leaves."""
        ratio, advantage = tokens.log_ratio().exp(), tokens.advantage
        positive, negative = map(
            ratio.new_tensor, (self.temperature_positive, self.temperature_negative)
        )
        temperature = torch.where(advantage > 0, positive, negative)
        gate = torch.sigmoid(temperature * (ratio - 1))
        fixed = gate.detach()
        return PolicyTerms(
            loss=-4 / temperature * gate * advantage,
            ratio=ratio.detach(),
            stats={"gate_mean": 4 * fixed * (1 - fixed)},
        )
