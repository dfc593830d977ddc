"""The loss token by token, in plain Python: slow, obvious, and nobody's import.

Every objective takes the scored tokens twice: `batch` holds the current log-probabilities, and
`frozen` what they are where the formula says "without gradient". So a finite difference of `batch`
with `frozen` held is the gradient that training must see.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Token:
    logprob: float
    old: float
    behaviour: float
    reference: float
    entropy: float
    advantage: float
    weight: float
    segment: int
    is_scored: bool = True


Batch = Sequence[Token]


def clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def log_ratio(token: Token) -> float:
    return clip(token.logprob - token.old, -20, 20)


def ppo(batch: Batch, frozen: Batch, *, clip_low=0.2, clip_high=0.2, dual_clip=3.0) -> list[float]:
    losses = []
    for token in batch:
        r, a = math.exp(log_ratio(token)), token.advantage
        loss = -min(r * a, clip(r, 1 - clip_low, 1 + clip_high) * a)
        losses.append(min(loss, -dual_clip * a) if dual_clip and a < 0 else loss)
    return losses


def gspo(batch: Batch, frozen: Batch, *, clip_low=3e-4, clip_high=4e-4) -> list[float]:
    losses = []
    for token, fixed in zip(batch, frozen, strict=True):
        gaps = [t.logprob - t.old for t in frozen if t.segment == token.segment]
        s = math.exp(clip(mean(gaps), -20, 20)) * math.exp(token.logprob - fixed.logprob)
        a = token.advantage
        losses.append(-min(s * a, clip(s, 1 - clip_low, 1 + clip_high) * a))
    return losses


def gspo_of_sequences(batch: Batch, *, clip_low=3e-4, clip_high=4e-4) -> float:
    """The paper's Eq. 5 with everything differentiated: what `gspo` sums to, with its gradient."""
    result = 0.0
    for segment in {token.segment for token in batch}:
        same = [token for token in batch if token.segment == segment]
        s, a = math.exp(mean([t.logprob - t.old for t in same])), same[0].advantage
        loss = -min(s * a, clip(s, 1 - clip_low, 1 + clip_high) * a)
        result += sum(token.weight for token in same) * loss
    return result


def cispo(batch: Batch, frozen: Batch, *, clip_low=1.0, clip_high=4.0) -> list[float]:
    losses = []
    for token, fixed in zip(batch, frozen, strict=True):
        weight = clip(math.exp(log_ratio(fixed)), 1 - clip_low, 1 + clip_high)
        losses.append(-weight * token.advantage * token.logprob)
    return losses


def reinforce(batch: Batch, frozen: Batch) -> list[float]:
    return [-token.advantage * token.logprob for token in batch]


def sft(batch: Batch, frozen: Batch, *, weight: str = "advantage") -> list[float]:
    good = [max(token.advantage, 0.0) for token in batch]
    weights = good if weight == "advantage" else [float(each > 0) for each in good]
    return [-each * token.logprob for each, token in zip(weights, batch, strict=True)]


OBJECTIVES = {"ppo": ppo, "gspo": gspo, "cispo": cispo, "reinforce": reinforce, "sft": sft}


def importance_weights(batch: Batch, mode: str, low: float, high: float) -> list[float]:
    weights = []
    for token in batch:
        same = [t for t in batch if t.segment == token.segment]
        gap = token.old - token.behaviour
        gaps = [t.old - t.behaviour for t in same]
        level = {"sequence": math.fsum(gaps), "geometric": mean(gaps)}.get(mode.split("-")[0], gap)
        rho = math.exp(clip(level, -20, 20))
        if mode in ("none", "bypass"):
            weights.append(1.0)
        elif mode.endswith("truncate"):
            weights.append(min(rho, high))
        else:
            weights.append(rho if low <= rho <= high else 0.0)
    return weights


def divergence(token: Token, estimator: str) -> float:
    d = clip(token.reference - token.logprob, -20, 20)
    k3 = min(math.exp(d) - d - 1, 10)
    return {"k1": -d, "k2": d * d / 2, "k3": k3, "k3+": k3}[estimator]


def divergence_to_differentiate(token: Token, fixed: Token, estimator: str) -> float:
    if estimator != "k3+":
        return divergence(token, estimator)
    moved = divergence(token, "k2") - divergence(fixed, "k2")
    return divergence(fixed, "k3") + moved


def total(
    batch: Batch,
    frozen: Batch,
    *,
    objective: str = "ppo",
    options: dict[str, float] | None = None,
    mode: str = "none",
    low: float = 0.5,
    high: float = 2.0,
    kl_coefficient: float = 0.0,
    kl_estimator: str = "k3",
    entropy_coefficient: float = 0.0,
) -> float:
    batch = [token for token in batch if token.is_scored]
    frozen = [token for token in frozen if token.is_scored]
    losses = OBJECTIVES[objective](batch, frozen, **(options or {}))
    weights = importance_weights(batch, mode, low, high)
    result = 0.0
    for token, fixed, loss, rho in zip(batch, frozen, losses, weights, strict=True):
        kl = kl_coefficient * divergence_to_differentiate(token, fixed, kl_estimator)
        result += token.weight * (rho * loss + kl - entropy_coefficient * token.entropy)
    return result


def gradient(batch: Batch, **loss: Any) -> list[float]:
    """The slope of `total` in every log-probability."""
    return differences(batch, lambda moved: total(moved, batch, **loss))


def differences(batch: Batch, function: Callable[[Batch], float]) -> list[float]:
    slopes = []
    for position, token in enumerate(batch):
        ends = []
        for step in (1e-6, -1e-6):
            moved = list(batch)
            moved[position] = replace(token, logprob=token.logprob + step)
            ends.append(function(moved))
        slopes.append((ends[0] - ends[1]) / 2e-6)
    return slopes
