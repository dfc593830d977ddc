"""The whole loss of a micro-batch, and the sums that make the metrics."""

import math
from dataclasses import replace
from typing import Any, get_args

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from graphcredit.trainer.loss.objectives.ppo import Ppo
from graphcredit.trainer.loss.objectives.reinforce import Reinforce
from graphcredit.trainer.loss.policy_loss import averages
from graphcredit.trainer.loss.registry import OBJECTIVES, configure_objective
from graphcredit.trainer.options import CorrectionMode
from tests.examples import examples
from tests.trainer import oracle
from tests.trainer.token_batches import batches, gradient_of, loss_of, tensors, token


@settings(max_examples=examples(150))
@given(
    batch=batches(gap=2.0),
    name=st.sampled_from([row.name for row in OBJECTIVES]),
    mode=st.sampled_from(get_args(CorrectionMode)),
    estimator=st.sampled_from(["k1", "k2", "k3", "k3+"]),
    kl=st.sampled_from([0.0, 0.01, 0.5]),
    entropy=st.sampled_from([0.0, 0.1]),
)
def test_loss_and_gradient_are_those_of_the_slow_one(
    batch: Any, name: str, mode: Any, estimator: Any, kl: float, entropy: float
):
    """Every ratio is 1.05, between the clips: those have their own tests, and kinks no slope."""
    batch = [replace(t, old=t.logprob - math.log(1.05)) for t in batch]
    options = {"gspo": {"clip_low": 0.5, "clip_high": 0.5}}.get(name, {})
    assume(all(abs(t.reference - t.logprob - 2.6) > 0.1 for t in batch))
    tokens = tensors(batch)
    loss = loss_of(
        tokens,
        configure_objective(name, options),
        correction=mode,
        kl_coefficient=kl,
        kl_estimator=estimator,
        entropy_coefficient=entropy,
    )
    asked = {
        "objective": name,
        "options": options,
        "mode": mode,
        "kl_coefficient": kl,
        "kl_estimator": estimator,
        "entropy_coefficient": entropy,
    }
    assert loss.loss.item() == pytest.approx(oracle.total(batch, batch, **asked), abs=1e-9)
    assert gradient_of(tokens, loss) == pytest.approx(oracle.gradient(batch, **asked), abs=1e-6)


def test_the_parts_and_their_sums_by_hand():
    """Two tokens of weights 1/4 and 3/4 with A = 2, log-probability -1, and a third not scored.

    REINFORCE: -2 · -1 = 2 each. Reference at -3 and -1: k2 = 2 and 0. Entropy 0.5 each.
    """
    batch = [
        token(advantage=2.0, weight=0.25, reference=-3.0, behaviour=-0.5),
        token(advantage=2.0, weight=0.75, old=-1.0 - math.log(2)),
        token(is_scored=False),
    ]
    loss = loss_of(
        tensors(batch), Reinforce(), kl_coefficient=0.1, kl_estimator="k2", entropy_coefficient=0.2
    )
    sums = {name: value.item() for name, value in loss.sums.items()}
    assert sums == pytest.approx(
        {
            "loss": 2.0 + 0.05 - 0.1,
            "policy_loss": 2.0,
            "kl_loss": 0.25 * 0.1 * 2,
            "entropy_loss": -0.2 * 0.5,
            "num_scored": 2,
            "ratio_mean": 1 + 2,
            "approx_kl": 2 - 1 - math.log(2),
            "mismatch_mean": 0.5,
            "mismatch_share": 1,
            "correction_mean": 2,
            "correction_square": 2,
            "correction_cut": 0,
            "kl": 2.0,
            "entropy": 1.0,
        }
    )
    assert loss.maxima["ratio_max"].item() == pytest.approx(2.0)
    assert loss.maxima["mismatch_max"].item() == pytest.approx(0.5)
    means = averages(sums)
    assert means["loss"] == sums["loss"]
    assert means["kl"] == 1.0
    assert means["ratio_mean"] == pytest.approx(1.5)
    assert means["num_scored"] == 2


def test_the_entropy_bonus_raises_entropy():
    tokens = tensors([token()])
    loss = loss_of(tokens, Reinforce(), entropy_coefficient=0.2)
    (slope,) = torch.autograd.grad(loss.loss, tokens.entropy)
    assert slope.tolist() == pytest.approx([-0.2])


def test_without_coefficients_divergence_and_entropy_are_watched_and_not_differentiated():
    tokens = tensors([token(reference=-2.0)])
    loss = loss_of(tokens, Reinforce())
    assert loss.sums["kl"].item() == pytest.approx(math.exp(-1) - 1 + 1)
    assert loss.sums["entropy"].item() == 0.5
    assert torch.autograd.grad(loss.loss, tokens.entropy, allow_unused=True) == (None,)
    assert "kl_loss" not in loss.sums


def test_without_reference_and_entropy_there_is_nothing_to_say_of_them():
    tokens = replace(tensors([token()]), reference=None, entropy=None)
    assert not {"kl", "entropy"} & loss_of(tokens, Reinforce()).sums.keys()


def test_where_the_weights_of_the_start_are_unknown_so_is_the_gap_to_the_sampler():
    loss = loss_of(replace(tensors([token(behaviour=-3.0)]), start=None), Ppo())
    assert not [name for name in (*loss.sums, *loss.maxima) if name.startswith("mismatch")]


def test_a_micro_batch_without_a_scored_token_has_loss_0_gradient_0_and_the_same_keys():
    """Its loss stays on the graph, so that a rank with a dummy takes part in every collective."""
    tokens, dummy = tensors([token()]), tensors([token(weight=0.0), token(is_scored=False)])
    loss, nothing = loss_of(tokens, Ppo()), loss_of(dummy, Ppo())
    assert gradient_of(dummy, nothing) == [0.0, 0.0]
    assert [*nothing.sums] == [*loss.sums]
    assert [*nothing.maxima] == [*loss.maxima]
    assert {value.item() for value in [*nothing.sums.values(), *nothing.maxima.values()]} == {0.0}


def test_sums_are_taken_in_float64_and_hold_no_graph():
    loss = loss_of(tensors([token()], torch.float32), Ppo())
    assert {value.dtype for value in loss.sums.values()} == {torch.float64}
    assert not any(value.requires_grad for value in loss.sums.values())
    assert loss.loss.dtype == torch.float32
