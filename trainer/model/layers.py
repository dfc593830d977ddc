"""The parts of a model that the rest of the trainer asks for: layers, sizes, experts."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer

from graphcredit.trainer.model.flops import ModelShape
from graphcredit.trainer.model.logprobs import Scorer
from graphcredit.trainer.options import ModelOptions

LARGE = 1_000_000_000
"""Weights from which layers compute their activations again, unless the options say otherwise."""


def decoder_layers(scorer: Scorer) -> list[Any]:
    """Return the layers of the decoder: the units of sharding, recomputation and compilation."""
    return [m for m in scorer.modules() if isinstance(m, GradientCheckpointingLayer)]


def num_embeddings(scorer: Scorer) -> int:
    """Return how many token ids a model knows."""
    return scorer.causal_lm.get_input_embeddings().num_embeddings


def model_shape(scorer: Scorer) -> ModelShape:
    """Return the sizes that determine the floating-point operations of a pass."""
    config = scorer.causal_lm.config.get_text_config()
    experts = experts_of(config)
    count = count_weights if experts is None else experts.num_used
    head = scorer.causal_lm.get_output_embeddings().weight
    ends = {id(p): p.numel() for p in (head, scorer.causal_lm.get_input_embeddings().weight)}
    body = [p for p in scorer.causal_lm.get_decoder().parameters() if id(p) not in ends]
    heads = config.num_attention_heads
    return ModelShape(
        num_body=count(body),
        num_head=head.numel(),
        num_frozen=count(p for p in body if not p.requires_grad),
        is_head_frozen=not head.requires_grad,
        num_layers=config.num_hidden_layers,
        attention_width=heads * (getattr(config, "head_dim", 0) or config.hidden_size // heads),
    )


def count_weights(parameters: Iterable[nn.Parameter]) -> int:
    """Return how many numbers parameters have."""
    return sum(p.numel() for p in parameters)


def recompute_activations(scorer: Scorer, options: ModelOptions) -> None:
    """Let layers recompute their activations if the options say so, as nothing else in training.

    A layer recomputes only if it is in training mode itself; its parts stay in evaluation mode,
    without dropout, so that a ratio of 1 is 1.
    """
    asked = options.gradient_checkpointing
    if not (sum(p.numel() for p in scorer.parameters()) >= LARGE if asked is None else asked):
        return
    again = partial(checkpoint, use_reentrant=False, preserve_rng_state=False)
    for layer in decoder_layers(scorer):
        layer.training = layer.gradient_checkpointing = True
        layer._gradient_checkpointing_func = again


@dataclass(frozen=True, kw_only=True, slots=True)
class Experts:
    """The experts of each layer that has a router."""

    count: int
    """Experts that a router chooses among."""
    chosen: int
    """Experts that each token goes through."""

    def num_used(self, parameters: Iterable[nn.Parameter]) -> int:
        """Return how many entries of some parameters a token goes through.

        The weights of all experts of a layer are one parameter of three dimensions, experts first.
        """
        return sum(
            p.numel() // self.count * self.chosen
            if p.dim() == 3 and len(p) == self.count
            else p.numel()
            for p in parameters
        )


def experts_of(config: Any) -> Experts | None:
    """Return the experts of a causal LM in transformers; None for a dense one."""
    text = config.get_text_config()
    count = getattr(text, "num_experts", None) or getattr(text, "num_local_experts", None)
    chosen = getattr(text, "num_experts_per_tok", None)
    if not count or not chosen:
        return None
    return Experts(count=count, chosen=chosen)
