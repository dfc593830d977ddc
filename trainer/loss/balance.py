"""The loss that keeps the experts of a mixture evenly used (Switch Transformer, arXiv 2101.03961).

Of each layer: E · Σ_e f_e · P_e, with f_e the mean number of choices of expert e by a token, and
P_e the mean probability that the router gives it; both over all tokens of an optimizer step, of
all its micro-batches and processes. A micro-batch is too small to be balanced (arXiv 2501.11873),
and a mean over one would depend on how steps are packed. The loss is the mean over layers; it is
the number of experts that a token goes through where all are used alike, and more otherwise.

f_e has no gradient, and P_e is a mean: once the choices of the whole step are counted, the loss is
a sum over tokens, which micro-batches and processes add up to.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class Choices:
    """The choices of experts by all tokens of an optimizer step."""

    counts: Tensor
    """[L, E] float64: tokens of the step that chose each expert of each layer."""
    num_tokens: float
    """Tokens of the step."""


def count_choices(router_logits: Sequence[Tensor], copies: Tensor, num_chosen: int) -> Tensor:
    """Return how many tokens choose each expert of each layer.

    Args:
        router_logits: Of each of L layers, [T, E].
        copies: [T] float, how often a token counts.
        num_chosen: Experts that a token goes through.

    Returns:
        [L, E] float64.
    """
    counts = [
        torch.zeros(logits.shape[1], dtype=torch.float64, device=logits.device).index_add_(
            0,
            logits.float().softmax(-1).topk(num_chosen, dim=-1).indices.flatten(),
            copies.double().repeat_interleave(num_chosen),
        )
        for logits in router_logits
    ]
    return torch.stack(counts)


def balance_loss(router_logits: Sequence[Tensor], copies: Tensor, choices: Choices) -> Tensor:
    """Return a micro-batch's summand of the balance loss of its optimizer step. [] float32.

    Args:
        router_logits: Of each of L layers, [T, E], with gradient.
        copies: [T] float, how often a token counts; 0 in a dummy.
        choices: Of the whole optimizer step.
    """
    share = (choices.counts / choices.num_tokens**2).float()
    of_layers = [
        copies.float() @ (logits.float().softmax(-1) @ share[layer]) * logits.shape[1]
        for layer, logits in enumerate(router_logits)
    ]
    return torch.stack(of_layers).mean()
