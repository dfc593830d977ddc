"""Log-probabilities of the response tokens of packed samples, and nothing more than those need."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from graphcredit.trainer.batching.packed_batch import PackedBatch
from graphcredit.trainer.model.head import Head, head_logprobs, logit_rule
from graphcredit.trainer.model.packed_attention import Segments


class Scorer(nn.Module):
    """A causal language model that answers with log-probabilities.

    Every forward pass of the trainer goes through this module, so that a wrapper of it (sharding)
    sees all of them. The head runs on the positions that predict a response token only, and its
    logits are never whole: a vocabulary of 150,000 makes them larger than everything else.
    """

    def __init__(self, model: Any, *, head_chunk: int):
        """Wrap a model.

        Args:
            model: A transformers causal LM with `PACKED_ATTENTION`, or a peft model of one.
            head_chunk: Response tokens that the head scores at once.
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
        segments: Segments,
        predictor: Tensor,
        token_ids: Tensor,
        temperature: Tensor,
        want_entropy: bool,
    ) -> tuple[Tensor, Tensor]:
        """Score R response tokens in T tokens of packed samples; see `scorer_arguments`.

        Args:
            input_ids: [T] int64, the samples one after the other.
            position_ids: [T] int64, from 0 in each sample.
            segments: Where the samples are, and what each attends to.
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
            **segments.arguments(),
        ).last_hidden_state[0]
        output = causal_lm.get_output_embeddings()
        head = Head(
            weight=output.weight,
            bias=output.bias,
            rule=logit_rule(causal_lm.config),
            chunk=self.head_chunk,
        )
        return head_logprobs(
            head, hidden[predictor], token_ids, temperature, want_entropy=want_entropy
        )

    def own_logprobs(self, tokens: Tensor) -> Tensor:
        """Return [n - 1] log-probabilities of [n] int64 tokens by the model's own forward pass."""
        logits = self.causal_lm(input_ids=tokens[None], use_cache=False).logits[0, :-1]
        return logits.log_softmax(-1).gather(-1, tokens[1:, None])[:, 0]


def scorer_arguments(
    batch: PackedBatch, put: Callable[[NDArray[Any]], Tensor], *, want_entropy: bool
) -> tuple[Any, ...]:
    """Return the arguments of `Scorer.forward` for a micro-batch.

    Args:
        batch: The micro-batch.
        put: Makes a tensor of an array, where the model is.
        want_entropy: Whether the entropy has a gradient.
    """
    keys, bounds = batch.keys, put(batch.cu_seqlens)
    segments = Segments(
        bounds=bounds,
        longest=int(np.diff(batch.cu_seqlens).max()),
        key_bounds=bounds if keys is None else put(keys.cu_seqlens),
        longest_keys=batch.max_length,
        key_positions=None if keys is None else put(keys.positions),
    )
    tokens = (put(batch.input_ids), put(batch.position_ids))
    responses = (put(batch.predictor), put(batch.token_ids), put(batch.temperature))
    return (*tokens, segments, *responses, want_entropy)
