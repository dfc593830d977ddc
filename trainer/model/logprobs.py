"""Log-probabilities of the response tokens of packed samples, and nothing more than those need."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


class Scorer(nn.Module):
    """A causal language model that answers with log-probabilities.

    Every forward pass of the trainer goes through this module, so that a wrapper of it (sharding)
    sees all of them. The head runs on the positions that predict a response token only, a chunk at
    a time, and its logits are computed again in the backward pass instead of being kept: a
    vocabulary of 150,000 makes them larger than everything else.
    """

    def __init__(self, model: Any, *, head_chunk: int):
        """Wrap a model.

        Args:
            model: A transformers causal LM with `PACKED_ATTENTION`, or a peft model of one.
            head_chunk: Response tokens whose logits exist at once.
        """
        super().__init__()
        self.model = model
        self.head_chunk = head_chunk

    @property
    def causal_lm(self) -> Any:
        """The transformers model, without the peft model around it."""
        return self.model.get_base_model() if hasattr(self.model, "get_base_model") else self.model

    def forward(
        self,
        input_ids: Tensor,
        position_ids: Tensor,
        cu_seqlens: Tensor,
        max_length: int,
        predictor: Tensor,
        token_ids: Tensor,
        temperature: Tensor,
        want_entropy: bool,
    ) -> tuple[Tensor, Tensor]:
        """Score R response tokens of S samples of T tokens in all.

        Args:
            input_ids: [T] int64, the samples one after the other.
            position_ids: [T] int64, from 0 in each sample.
            cu_seqlens: [S + 1] int32, where the samples start and the last one ends.
            max_length: Tokens of the longest sample.
            predictor: [R] int64, the position in [0, T) that predicts each response token.
            token_ids: [R] int64, the response tokens.
            temperature: [R] float32, by which logits are divided.
            want_entropy: Whether the entropy has a gradient.

        Returns:
            [R] float32 log-probability of each token, and [R] float32 entropy of the distribution
            it was drawn from, both at the temperature.
        """
        causal_lm = self.causal_lm
        hidden = causal_lm.get_decoder()(
            input_ids=input_ids[None],
            position_ids=position_ids[None],
            use_cache=False,
            cu_seq_lens_q=cu_seqlens,
            cu_seq_lens_k=cu_seqlens,
            max_length_q=max_length,
            max_length_k=max_length,
        ).last_hidden_state[0]
        score = partial(_score, partial(_logits, causal_lm), want_entropy)
        chunks = zip(
            hidden[predictor].split(self.head_chunk),
            token_ids.split(self.head_chunk),
            temperature.split(self.head_chunk),
            strict=True,
        )
        scored = [
            checkpoint(score, *chunk, use_reentrant=False, preserve_rng_state=False)
            for chunk in chunks
        ]
        logprobs, entropies = zip(*scored, strict=True)
        return torch.cat(logprobs), torch.cat(entropies)


def _logits(causal_lm: Any, hidden: Tensor) -> Tensor:
    """Return float32 logits: the head's output, scaled or capped as in the model's family.

    Families differ in three fields of the configuration: Granite divides by `logits_scaling`,
    Cohere multiplies by `logit_scale`, Gemma caps softly at `final_logit_softcapping`.
    """
    config = causal_lm.config
    logits = causal_lm.get_output_embeddings()(hidden).float()
    if (divisor := getattr(config, "logits_scaling", None)) is not None:
        logits = logits / divisor
    if (factor := getattr(config, "logit_scale", None)) is not None:
        logits = logits * factor
    if (cap := getattr(config, "final_logit_softcapping", None)) is not None:
        logits = torch.tanh(logits / cap) * cap
    return logits


def _score(
    logits_of: Callable[[Tensor], Tensor],
    want_entropy: bool,
    hidden: Tensor,
    token_ids: Tensor,
    temperature: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return log-probability and entropy of one chunk of tokens."""
    logits = logits_of(hidden) / temperature[:, None]
    log_total = logits.logsumexp(dim=-1)
    logprob = logits.gather(-1, token_ids[:, None])[:, 0] - log_total
    with torch.set_grad_enabled(want_entropy and torch.is_grad_enabled()):
        entropy = log_total - (logits.softmax(dim=-1) * logits).sum(dim=-1)
    return logprob, entropy
