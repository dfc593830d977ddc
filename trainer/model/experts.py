"""Mixtures of experts: what a configuration says of them, and the parameters that tokens use."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from torch import nn


@dataclass(frozen=True, kw_only=True, slots=True)
class Experts:
    """The experts of each layer that has a router."""

    count: int
    """Experts that a router chooses among."""
    chosen: int
    """Experts that each token goes through."""
    coefficient: float | None
    """Weight of the balance loss (`router_aux_loss_coef`); None where the family has no such loss:
    its routers are kept even by other means."""

    def num_used(self, parameters: Iterable[nn.Parameter]) -> int:
        """Return how many entries of some parameters a token goes through.

        The weights of all experts of a layer are one parameter of three dimensions, experts first.
        """
        return sum(
            p.numel() // self.count * self.chosen if self._is_stack(p) else p.numel()
            for p in parameters
        )

    def _is_stack(self, parameter: nn.Parameter) -> bool:
        return parameter.dim() == 3 and parameter.shape[0] == self.count


def experts_of(config: Any) -> Experts | None:
    """Return the experts of a causal LM in transformers; None for a dense one."""
    text = config.get_text_config()
    count = getattr(text, "num_experts", None) or getattr(text, "num_local_experts", None)
    chosen = getattr(text, "num_experts_per_tok", None)
    if not count or not chosen:
        return None
    return Experts(
        count=count, chosen=chosen, coefficient=getattr(text, "router_aux_loss_coef", None)
    )
