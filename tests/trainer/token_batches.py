"""Builders of tokens for the tests of the loss: by hand, and at random."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from hypothesis import strategies as st

from graphcredit.trainer.loss.inputs import TokenInputs
from graphcredit.trainer.loss.policy_loss import PolicyLoss, policy_loss
from graphcredit.trainer.loss.registry import Objective
from graphcredit.trainer.options import LossOptions
from tests.trainer.oracle import Token

torch.set_num_threads(1)


def token(**values: Any) -> Token:
    """Return a token of an unchanged policy: all ratios 1, advantage 1, weight 1."""
    logprob = values.get("logprob", -1.0)
    old = values.get("old", logprob)
    return Token(
        **{
            "logprob": logprob,
            "old": old,
            "behaviour": old,
            "reference": logprob,
            "entropy": 0.5,
            "advantage": 1.0,
            "weight": 1.0,
            "segment": 0,
            **values,
        }
    )


def tensors(batch: Sequence[Token], dtype: torch.dtype = torch.float64) -> TokenInputs:
    """Return the arrays; where a token is not scored, everything that could be NaN is."""

    def column(name: str) -> torch.Tensor:
        values = [getattr(t, name) if t.is_scored else math.nan for t in batch]
        return torch.tensor(values, dtype=dtype)

    return TokenInputs(
        logprob=column("logprob").requires_grad_(),
        old=column("old"),
        behaviour=column("behaviour"),
        start=column("old"),
        reference=column("reference"),
        entropy=column("entropy").requires_grad_(),
        advantage=column("advantage"),
        weight=torch.tensor([t.weight for t in batch], dtype=dtype),
        is_scored=torch.tensor([t.is_scored for t in batch], dtype=torch.bool),
        segment=torch.tensor([t.segment for t in batch], dtype=torch.int64),
        num_segments=1 + max((t.segment for t in batch), default=-1),
    )


def loss_of(tokens: TokenInputs, objective: Objective, **changes: Any) -> PolicyLoss:
    """Return the loss with everything but the objective switched off, unless asked for."""
    options = LossOptions(**{"correction": "none", "kl_coefficient": 0.0, **changes})
    return policy_loss(tokens, objective, options)


def gradient_of(tokens: TokenInputs, loss: PolicyLoss) -> list[float]:
    """Return the gradient of the loss in each log-probability."""
    (slope,) = torch.autograd.grad(loss.loss, tokens.logprob)
    return slope.tolist()


@st.composite
def batches(draw: st.DrawFn, gap: float = 3.0) -> list[Token]:
    """Draw segments of random tokens; a segment has one advantage and one weight."""

    def number(low: float, high: float) -> float:
        return draw(st.floats(low, high, allow_subnormal=False))

    result: list[Token] = []
    for segment in range(draw(st.integers(1, 4))):
        advantage, weight = number(-3, 3), number(0.01, 1)
        for _ in range(draw(st.integers(1, 4))):
            logprob = number(-9, -0.01)
            old = logprob - number(-gap, gap)
            result.append(
                Token(
                    logprob=logprob,
                    old=old,
                    behaviour=old - number(-gap, gap),
                    reference=logprob + number(-gap, gap),
                    entropy=number(0, 5),
                    advantage=advantage,
                    weight=weight,
                    segment=segment,
                    is_scored=draw(st.integers(0, 4)) > 0,
                )
            )
    return result


def renumbered(batch: Sequence[Token]) -> list[Token]:
    """Return the tokens with their segments numbered as they come, as a packed batch has them."""
    numbers = {s: i for i, s in enumerate(dict.fromkeys(t.segment for t in batch))}
    return [replace(t, segment=numbers[t.segment]) for t in batch]
