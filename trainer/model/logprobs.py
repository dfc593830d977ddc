"""Log-probabilities of the response tokens of packed samples, and nothing more than those need."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from graphcredit.trainer.batching.packed_batch import PackedBatch
from graphcredit.trainer.model.head import head_logprobs
from graphcredit.trainer.model.packed_attention import Segments


class Scored(NamedTuple):
    """What a pass over packed samples gives."""

    logprob: Tensor
    """[R] float32 log-probability of each response token, at its temperature."""
    entropy: Tensor
    """[R] float32 entropy of the distribution it was drawn from."""


class Scorer(nn.Module):
    """A causal language model that answers with log-probabilities.

    Every forward pass of the trainer goes through this module, so that a wrapper of it (sharding)
    sees all of them. The head runs on the positions that predict a response token only, and its
    logits are never whole: a vocabulary of 150,000 makes them larger than everything else.
    """

    def __init__(self, model: Any):
        """Wrap a model.

        Args:
            model: A transformers causal LM with `PACKED_ATTENTION`, or a peft model of one.
        """
        super().__init__()
        self.model = model

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
        pictures: tuple[Tensor, Tensor, Tensor] | None = None,
    ) -> Scored:
        """Score R response tokens in T tokens of packed samples; see `scorer_arguments`.

        Args:
            input_ids: [T] int64, the samples one after the other.
            position_ids: [T] int64, from 0 in each sample; [3, T] with pictures.
            segments: Where the samples are, and what each attends to.
            predictor: [R] int64, the position in [0, T) that predicts each response token.
            token_ids: [R] int64, the response tokens.
            temperature: [R] float32, by which logits are divided.
            want_entropy: Whether the entropy has a gradient.
            pictures: [P, D] patches and [N, 3] grids of images, and [V] the tokens that the
                vectors which the vision tower makes of them stand for.
        """
        causal_lm = self.causal_lm
        output = causal_lm.get_decoder()(
            **(
                {"input_ids": input_ids[None]}
                if pictures is None
                else {"inputs_embeds": self._embedded(input_ids, *pictures)[None]}
            ),
            position_ids=position_ids.unsqueeze(-2),
            use_cache=False,
            **segments.arguments(),
        )
        logprob, entropy = head_logprobs(
            causal_lm.get_output_embeddings().weight,
            output.last_hidden_state[0][predictor],
            token_ids,
            temperature,
            want_entropy=want_entropy,
        )
        return Scored(logprob, entropy)

    def _embedded(
        self, input_ids: Tensor, patches: Tensor, grids: Tensor, places: Tensor
    ) -> Tensor:
        """Return [T, H] inputs of the decoder, with vectors of images in place of placeholders."""
        causal_lm = self.causal_lm
        embedded: Tensor = causal_lm.get_input_embeddings()(input_ids)
        seen = causal_lm.get_image_features(patches, grids, return_dict=True).pooler_output
        vectors = torch.cat(seen)[: len(places)].to(embedded.dtype)
        return embedded.index_copy(0, places, vectors)

    def own_logprobs(self, tokens: Tensor, **pictures: Tensor) -> Tensor:
        """Return [n - 1] log-probabilities of [n] int64 tokens by the model's own forward pass."""
        output = self.causal_lm(input_ids=tokens[None], use_cache=False, **pictures)
        logits = output.logits[0, :-1]
        return logits.log_softmax(-1).gather(-1, tokens[1:, None])[:, 0]


def scorer_arguments(
    batch: PackedBatch, put: Callable[[NDArray[Any]], Tensor], *, want_entropy: bool
) -> tuple[Any, ...]:
    """Return the arguments of `Scorer.forward` for a micro-batch."""
    keys, bounds = batch.keys, put(batch.cu_seqlens)
    segments = Segments(
        bounds=bounds,
        longest=int(np.diff(batch.cu_seqlens).max()),
        key_bounds=bounds if keys is None else put(keys.cu_seqlens),
        longest_keys=batch.max_length,
        key_positions=None if keys is None else put(keys.positions),
    )
    seen = batch.pictures
    return (
        put(batch.input_ids),
        put(batch.position_ids),
        segments,
        put(batch.predictor),
        put(batch.token_ids),
        put(batch.temperature),
        want_entropy,
        seen and tuple(put(each) for each in (seen.patches, seen.grids, seen.places)),
    )
