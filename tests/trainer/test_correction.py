"""Importance weights between sampler and trainer: by hand, and against the slow ones."""

import math
from typing import Any, get_args

import pytest
from hypothesis import given, settings

from graphcredit.store.errors import OptionError
from graphcredit.trainer.loss.importance import importance_weights
from graphcredit.trainer.loss.objectives.reinforce import Reinforce
from graphcredit.trainer.loss.policy_loss import averages
from graphcredit.trainer.options import CorrectionMode, LossOptions
from tests.examples import examples
from tests.trainer import oracle
from tests.trainer.oracle import Token
from tests.trainer.token_batches import batches, gradient_of, loss_of, tensors, token

MODES = get_args(CorrectionMode)


def sampled(rho: float, **values: Any) -> Token:
    """Return a token that the trainer finds `rho` times as likely as the sampler did."""
    return token(logprob=-1.0, behaviour=-1.0 - math.log(rho), **values)


_ONE_RESPONSE = [sampled(0.25), sampled(1.0), sampled(4.0)]
"""The product is 1, and so is its root: as a whole all is within bounds, 0.5 and 2."""
_PRODUCTS = [
    *[sampled(0.8)] * 2,
    *[sampled(1.6, segment=1)] * 2,
    *[sampled(0.7, segment=2)] * 2,
    sampled(1.5, segment=3),
]
"""Products: 0.8 · 0.8 = 0.64; 1.6 · 1.6 = 2.56; 0.7 · 0.7 = 0.49; 1.5 alone. The sequence is judged
by them, as TRL and verl do. Their means are within the bounds, all of them."""
_ROOTS = [
    *(sampled(16.0), sampled(1.0)),
    *(sampled(1 / 16, segment=1), sampled(1.0, segment=1)),
    sampled(1.5, segment=2),
]
"""Means: (16 · 1)^(1/2) = 4; (1/16 · 1)^(1/2) = 1/4; 1.5 alone."""


@pytest.mark.parametrize(
    ("batch", "mode", "expected"),
    [
        (_ONE_RESPONSE, "none", [1.0] * 3),
        (_ONE_RESPONSE, "token-truncate", [0.25, 1.0, 2.0]),
        (_ONE_RESPONSE, "token-mask", [0.0, 1.0, 0.0]),
        *(
            (_ONE_RESPONSE, f"{level}-{cut}", [1.0] * 3)
            for level in ("sequence", "geometric")
            for cut in ("truncate", "mask")
        ),
        (_PRODUCTS, "sequence-truncate", [0.64, 0.64, 2.0, 2.0, 0.49, 0.49, 1.5]),
        (_PRODUCTS, "sequence-mask", [0.64, 0.64, 0.0, 0.0, 0.0, 0.0, 1.5]),
        (_PRODUCTS, "geometric-truncate", [0.8, 0.8, 1.6, 1.6, 0.7, 0.7, 1.5]),
        (_PRODUCTS, "geometric-mask", [0.8, 0.8, 1.6, 1.6, 0.7, 0.7, 1.5]),
        (_ROOTS, "geometric-truncate", [2.0, 2.0, 0.25, 0.25, 1.5]),
        (_ROOTS, "geometric-mask", [0.0, 0.0, 0.0, 0.0, 1.5]),
    ],
)
def test_weights_by_hand(batch: list[Token], mode: CorrectionMode, expected: list[float]):
    weights, _ = importance_weights(tensors(batch), LossOptions(correction=mode))
    assert weights.tolist() == pytest.approx(expected)


def test_a_product_of_many_ratios_neither_overflows_nor_vanishes():
    """400 tokens of exp(±1): e^400 is no float64 of any use; cut to e^±20."""
    far = [token(logprob=-1.0, behaviour=-2.0)] * 400
    near = [token(logprob=-2.0, behaviour=-1.0)] * 400
    for batch, end in ((far, math.exp(20)), (near, math.exp(-20))):
        correction = LossOptions(correction="sequence-truncate", correction_high=1e30)
        found = importance_weights(tensors(batch), correction)[0].tolist()
        assert found == pytest.approx([end] * 400)


def test_a_ratio_on_a_bound_is_kept():
    batch = tensors([token(logprob=0.0, behaviour=0.0)])
    for low, high in ((1.0, 2.0), (0.5, 1.0)):
        bounds = {"correction_low": low, "correction_high": high}
        assert importance_weights(batch, LossOptions(correction="token-mask", **bounds))[0] == 1.0


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=examples(40))
@given(batch=batches(gap=30.0))
def test_the_weights_are_those_of_the_slow_one(mode: CorrectionMode, batch: Any):
    correction = LossOptions(correction=mode, correction_low=0.3, correction_high=3.0)
    scored = [t for t in batch if t.is_scored]
    fast, _ = importance_weights(tensors(batch).scored(), correction)
    slow = oracle.importance_weights(scored, mode, 0.3, 3.0)
    assert fast.tolist() == pytest.approx(slow, rel=1e-9, abs=1e-12)


def test_a_weight_scales_the_policy_gradient_and_nothing_else():
    """ρ = 4 cut to 2: policy part -2 · A, A = 3; d = 1, so k2 adds 0.5 · -d, unweighted."""
    tokens = tensors([sampled(4.0, advantage=3.0, reference=0.0)])
    loss = loss_of(
        tokens, Reinforce(), correction="token-truncate", kl_coefficient=0.5, kl_estimator="k2"
    )
    assert gradient_of(tokens, loss) == pytest.approx([-2 * 3.0 - 0.5])
    assert tokens.behaviour.grad is None


@pytest.mark.parametrize(
    ("mode", "mean", "cut", "size"),
    [
        ("none", 1.0, 0.0, 1.0),
        ("token-truncate", 3.25 / 3, 1 / 3, 3.25**2 / 3 / (0.0625 + 1 + 4)),
        ("token-mask", 1 / 3, 2 / 3, 1 / 3),
    ],
)
def test_mean_share_cut_and_effective_sample_size(
    mode: CorrectionMode, mean: float, cut: float, size: float
):
    batch = tensors([sampled(0.25), sampled(1.0), sampled(4.0)])
    loss = loss_of(batch, Reinforce(), correction=mode)
    seen = averages({name: value.item() for name, value in loss.sums.items()})
    assert seen["correction_mean"] == pytest.approx(mean)
    assert seen["correction_cut"] == pytest.approx(cut)
    assert seen["effective_sample_size"] == pytest.approx(size)


def test_without_correction_nothing_is_cut_whatever_the_bounds():
    options = LossOptions(correction="none", correction_high=0.5)
    weight, stats = importance_weights(tensors([sampled(4.0)]), options)
    assert weight == 1.0
    assert not stats["correction_cut"].any()


def test_with_every_token_masked_nothing_is_learnt_and_the_effective_sample_size_is_0():
    tokens = tensors([sampled(9.0), sampled(0.01)])
    loss = loss_of(tokens, Reinforce(), correction="token-mask")
    assert gradient_of(tokens, loss) == [0.0, 0.0]
    assert averages({k: v.item() for k, v in loss.sums.items()})["effective_sample_size"] == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"correction_low": -1.0}, "must be at least 0"),
        ({"correction_high": 0.0}, "must be above 0"),
        ({"correction": "both"}, "must be 'none', 'bypass', 'token-truncate'"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any], message: str):
    with pytest.raises(OptionError, match=message):
        LossOptions(**options)
