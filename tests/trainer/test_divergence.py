"""The divergence estimators: by exact enumeration of small distributions, and at their ends."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from graphcredit.trainer.loss.kl import KlEstimator, divergence
from tests.examples import examples
from tests.trainer import oracle
from tests.trainer.token_batches import token

LOGITS = st.lists(st.floats(-1, 1), min_size=4, max_size=4)


def policy_and_reference(logits: list[float], others: list[float]) -> tuple[Tensor, Tensor, Tensor]:
    """Return [4] logits with gradient, and the log-probabilities of policy and reference."""
    leaf = torch.tensor(logits, dtype=torch.float64, requires_grad=True)
    return leaf, leaf.log_softmax(0), torch.tensor(others, dtype=torch.float64).log_softmax(0)


def mean_estimate(policy: Tensor, reference: Tensor, estimator: KlEstimator) -> Tensor:
    """Return its mean over every token that the policy may sample: how often has no gradient."""
    return (policy.exp().detach() * divergence(policy, reference, estimator)).sum()


def kl(p: Tensor, q: Tensor) -> Tensor:
    """Return KL(p ‖ q) itself, from log-probabilities."""
    return (p.exp() * (p - q)).sum()


def slope(value: Tensor, leaf: Tensor) -> list[float]:
    (gradient,) = torch.autograd.grad(value, leaf)
    return gradient.tolist()


@pytest.mark.parametrize("estimator", ["k1", "k2", "k3", "k3+"])
@settings(max_examples=examples(50))
@given(logits=LOGITS, others=LOGITS)
def test_on_average_an_estimate_and_its_gradient_are_those_that_the_table_says(
    estimator: KlEstimator, logits: Any, others: Any
):
    """The value of k2 is no divergence; k1 has gradient 0, and k3 that of the other direction."""
    leaf, policy, reference = policy_and_reference(logits, others)
    estimate = mean_estimate(policy, reference, estimator)
    if estimator != "k2":
        assert estimate.item() == pytest.approx(kl(policy, reference).item(), abs=1e-12)
    estimated = slope(estimate, leaf)
    leaf, policy, reference = policy_and_reference(logits, others)
    expected = {"k1": 0 * leaf.sum(), "k3": kl(reference, policy)}.get(
        estimator, kl(policy, reference)
    )
    assert estimated == pytest.approx(slope(expected, leaf), abs=1e-12)


@pytest.mark.parametrize("estimator", ["k1", "k2", "k3", "k3+"])
@settings(max_examples=examples(50))
@given(logprob=st.floats(-60, 0), reference=st.floats(-60, 0))
def test_an_estimate_is_that_of_the_slow_one(
    estimator: KlEstimator, logprob: float, reference: float
):
    fast = divergence(one(logprob), one(reference), estimator)
    slow = oracle.divergence(token(logprob=logprob, reference=reference), estimator)
    assert fast.item() == pytest.approx(slow, rel=1e-9, abs=1e-12)


def one(value: float) -> Tensor:
    return torch.tensor([value], dtype=torch.float64, requires_grad=True)


def test_by_hand_with_the_reference_twice_as_likely():
    """d = ln 2: -0.6931, 0.2402, 2 - 1 - 0.6931; slopes in logprob 1, -d, 1 - e^d."""
    expected = {"k1": (-0.693147, 1.0), "k2": (0.240227, -0.693147), "k3": (0.306853, -1.0)}
    expected["k3+"] = (0.306853, -0.693147)
    for estimator, (value, gradient) in expected.items():
        logprob = one(-2.0)
        estimate = divergence(logprob, torch.tensor([-2.0 + math.log(2)]), estimator)
        assert estimate.item() == pytest.approx(value, abs=1e-6)
        assert slope(estimate.sum(), logprob) == pytest.approx([gradient], abs=1e-6)


def test_beyond_the_cut_a_token_no_longer_pulls():
    """k3 is 10 from d = 2.61 up; every d is within ±20."""
    for estimator, reference, value in [
        ("k3", -1.0, 10.0),
        ("k3", -4.0, math.exp(2) - 3),
        ("k2", 1e4, 200.0),
        ("k1", -1e4, 20.0),
    ]:
        logprob = one(-6.0)
        estimate = divergence(logprob, torch.tensor([reference], dtype=torch.float64), estimator)
        assert estimate.item() == pytest.approx(value)
        expected = 1 - math.exp(2) if reference == -4.0 else 0.0
        assert slope(estimate.sum(), logprob) == pytest.approx([expected])


def test_k3_keeps_its_digits_where_the_policy_has_hardly_moved():
    """d = 1e-4 in float32: d² / 2 = 5e-9, which exp(d) - 1 - d would lose."""
    estimate = divergence(torch.tensor([0.0]), torch.tensor([1e-4]), "k3")
    assert estimate.item() == pytest.approx(5e-9, rel=2e-3)
