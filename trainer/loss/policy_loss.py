"""The loss of a micro-batch: objective, correction, divergence and entropy, as one sum."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from graphcredit.trainer.loss.importance import importance_weights
from graphcredit.trainer.loss.inputs import PolicyTerms, TokenInputs
from graphcredit.trainer.loss.kl import divergence
from graphcredit.trainer.loss.registry import Objective
from graphcredit.trainer.options import LossOptions

LOSSES = ("loss", "policy_loss", "kl_loss", "entropy_loss")
"""Sums that are complete as they are: their tokens are weighted by their share of the loss."""

NOTABLE_MISMATCH = 0.1
"""Nats from which a token counts as one on which sampler and trainer disagree."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyLoss:
    """The loss of a micro-batch and its statistics.

    Micro-batches and ranks are put together by adding `sums` and by taking the largest of `maxima`;
    both have the same keys in every micro-batch of an update, dummies included.
    """

    loss: Tensor
    """[] scalar to differentiate: Σ weight · loss over tokens."""
    sums: Mapping[str, Tensor]
    """Name to [] float64 sum over scored tokens; `averages` makes means of their totals."""
    maxima: Mapping[str, Tensor]
    """Name to [] float64 largest value over scored tokens; 0 if there are none."""


def policy_loss(tokens: TokenInputs, objective: Objective, options: LossOptions) -> PolicyLoss:
    """Return Σ weight · (ρ · objective + c_KL · KL - c_H · H) over the scored tokens.

    The weights come from the plan, so losses of micro-batches and ranks simply add up to the loss
    of the optimizer step, however its steps are packed.

    Args:
        tokens: All response tokens of the micro-batch. With c_KL above 0 `reference` must be there,
            and with c_H above 0 `entropy`.
        objective: Gives each token its loss, with its options.
        options: The correction gives ρ, which weighs the objective only; `kl_coefficient` is c_KL,
            and `entropy_coefficient` c_H.
    """
    scored = tokens.scored()
    terms = objective.terms(scored)
    importance, stats = importance_weights(scored, options)
    values = {**_ratio_stats(scored, terms), **terms.stats, **stats}
    maxima = {"ratio_max": _largest(terms.ratio)}
    if scored.start is not None:
        mismatch = (scored.start - scored.behaviour).abs()
        values |= {"mismatch_mean": mismatch, "mismatch_share": mismatch > NOTABLE_MISMATCH}
        maxima["mismatch_max"] = _largest(mismatch)
    parts = {"policy_loss": importance * terms.loss}
    if scored.reference is not None:
        values["kl"] = divergence(scored.logprob, scored.reference, options.kl_estimator)
    if scored.entropy is not None:
        values["entropy"] = scored.entropy
    if options.kl_coefficient:
        parts["kl_loss"] = options.kl_coefficient * values["kl"]
    if options.entropy_coefficient:
        parts["entropy_loss"] = -options.entropy_coefficient * values["entropy"]
    losses = {name: (scored.weight * part).sum() for name, part in parts.items()}
    losses["loss"] = torch.stack(list(losses.values())).sum()
    return PolicyLoss(
        loss=losses["loss"],
        sums={k: v.detach().sum(dtype=torch.float64) for k, v in {**losses, **values}.items()},
        maxima=maxima,
    )


def averages(sums: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics of an optimizer step.

    Returns:
        Losses as they are, `num_scored`, everything else per scored token; and
        `effective_sample_size`, (Σw)² / (n Σw²) of the correction's weights: the share of tokens
        that would be as good if all counted alike. 1 if they do, 0 if all are masked.
    """
    count = max(sums["num_scored"], 1.0)
    whole = (*LOSSES, "num_scored")
    means = {name: total if name in whole else total / count for name, total in sums.items()}
    square = means.pop("correction_square")
    means["effective_sample_size"] = means["correction_mean"] ** 2 / square if square else 0.0
    return means


def _ratio_stats(tokens: TokenInputs, terms: PolicyTerms) -> dict[str, Tensor]:
    """Return statistics of the ratios that every objective has. Each [R]."""
    log_ratio = tokens.log_ratio().detach()
    return {
        "num_scored": torch.ones_like(log_ratio),
        "ratio_mean": terms.ratio,
        "approx_kl": torch.expm1(log_ratio) - log_ratio,
    }


def _largest(values: Tensor) -> Tensor:
    smallest = torch.zeros(1, dtype=torch.float64, device=values.device)
    return torch.cat([smallest, values.detach().double()]).max()
