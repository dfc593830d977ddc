"""Log-probabilities of the response tokens of packed samples, and nothing more than those need."""

from typing import Any

from torch import Tensor, nn

from graphcredit.trainer.model.head import Head, head_logprobs, logit_rule


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
