"""Every objective against the slow one, and the contract that all of them keep."""

import itertools
import math
import random
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from graphcredit.store.errors import OptionError
from graphcredit.store.options import help_texts
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.loss.objectives.cispo import Cispo
from graphcredit.trainer.loss.objectives.gspo import Gspo
from graphcredit.trainer.loss.objectives.ppo import Ppo
from graphcredit.trainer.loss.registry import OBJECTIVES, ObjectiveRow, configure_objective
from graphcredit.trainer.options import WITHOUT_RATIOS
from tests.examples import examples
from tests.trainer import oracle
from tests.trainer.oracle import Token
from tests.trainer.token_batches import batches, gradient_of, loss_of, renumbered, tensors, token

VARIANTS: dict[str, list[dict[str, Any]]] = {
    "ppo": [{}, {"clip_low": 0.1, "clip_high": 0.28, "dual_clip": 0.0}, {"dual_clip": 1.1}],
    "gspo": [{}, {"clip_low": 0.5, "clip_high": 1.5}],
    "cispo": [{}, {"clip_low": 0.3, "clip_high": 0.5}],
    "reinforce": [{}],
    "sft": [{}, {"weight": "equal"}],
}
CASES = [(row.name, options) for row in OBJECTIVES for options in VARIANTS[row.name]]

each_variant = pytest.mark.parametrize(("name", "options"), CASES, ids=str)
each_objective = pytest.mark.parametrize("row", OBJECTIVES, ids=lambda row: row.name)


def is_at_a_kink(batch: list[Token], options: dict[str, float]) -> bool:
    """Whether a ratio is so near the end of a clip that a finite difference would straddle it."""
    defaults = {"clip_low": 0.2, "clip_high": 0.2, "dual_clip": 3.0}
    of_gspo = {"clip_low": 3e-4, "clip_high": 4e-4}
    bounds = [o | options for o in (defaults, of_gspo)]
    edges = {math.log(1 - b["clip_low"]) for b in bounds if b["clip_low"] < 1}
    edges |= {math.log(1 + b["clip_high"]) for b in bounds}
    edges |= {math.log(b["dual_clip"]) for b in bounds if b.get("dual_clip")}
    edges |= {0.4, -0.4, options.get("clip_high", 0.4), -options.get("clip_low", 0.4)}
    segments = {t.segment for t in batch}
    gaps = [[t.logprob - t.old for t in batch if t.segment == s] for s in segments]
    ratios = [*itertools.chain(*gaps), *map(oracle.mean, gaps)]
    return any(abs(ratio - edge) < 1e-5 for ratio in ratios for edge in edges)


@each_variant
@settings(max_examples=examples(60))
@given(batch=batches(), far=batches(gap=30.0))
def test_loss_and_gradient_are_those_of_the_slow_one(
    name: str, options: dict[str, float], batch: Any, far: Any
):
    """Of ratios as far as e^±30 the loss alone: a finite difference says nothing there."""
    objective = configure_objective(name, options)
    for each in (batch, far):
        slow = oracle.total(each, each, objective=name, options=options)
        assert loss_of(tensors(each), objective).loss.item() == pytest.approx(
            slow, rel=1e-9, abs=1e-9
        )
    assume(not is_at_a_kink([t for t in batch if t.is_scored], options))
    tokens = tensors(batch)
    slopes = oracle.gradient(batch, objective=name, options=options)
    fast = gradient_of(tokens, loss_of(tokens, objective))
    assert fast == pytest.approx(slopes, rel=1e-6, abs=1e-7)


def losses(objective: Any, *batch: Token) -> list[float]:
    return objective.terms(tensors(batch)).loss.tolist()


def at(ratio: float, **values: Any) -> Token:
    """Return a token whose probability was multiplied by `ratio`."""
    return token(logprob=-1.0, old=-1.0 - math.log(ratio), **values)


def test_ppo_stops_a_token_that_has_moved_enough_and_no_other():
    """r A for A = 2 and -2; clipped to 1.2 and 0.8; capped at 3."""
    batch = [
        at(ratio, advantage=advantage)
        for advantage in (2.0, -2.0)
        for ratio in (0.5, 1.1, 1.5, 2.5, 4.0)
    ]
    tokens = tensors(batch)
    loss = loss_of(tokens, Ppo())
    expected = [-1.0, -2.2, -2.4, -2.4, -2.4, 1.6, 2.2, 3.0, 5.0, 6.0]
    slopes = [-1.0, -2.2, 0.0, 0.0, 0.0, 0.0, 2.2, 3.0, 5.0, 0.0]
    assert losses(Ppo(), *batch) == pytest.approx(expected)
    assert gradient_of(tokens, loss) == pytest.approx(slopes)
    assert loss.sums["clipped_high"] == 3
    assert loss.sums["clipped_low"] == 1
    assert loss.sums["dual_clipped"] == 1


def test_ppo_counts_no_clip_without_advantage_and_needs_its_dual_clip_for_bad_tokens():
    stats = Ppo().terms(tensors([at(ratio, advantage=0.0) for ratio in (0.1, 9.0)])).stats
    assert not any(value.any() for value in stats.values())
    assert losses(Ppo(dual_clip=0.0), at(50.0, advantage=-1.0)) == pytest.approx([50.0])
    assert losses(Ppo(), at(50.0, advantage=-1.0)) == pytest.approx([3.0])
    assert losses(Ppo(), at(50.0, advantage=1.0)) == pytest.approx([-1.2])


@pytest.mark.parametrize("limit", [1.0, 0.3])
def test_a_dual_clip_within_the_clip_is_refused(limit: float):
    with pytest.raises(OptionError, match=r"ppo\.dual_clip must be 0 \(off\) or above 1"):
        Ppo(dual_clip=limit)


def test_gspo_has_one_ratio_per_response_and_the_gradient_of_its_logarithm():
    """One response with ratios 2 and 1/8: s = 1/2; A = 3, no clip: s A for each token."""
    batch = [at(2.0, advantage=3.0), at(1 / 8, advantage=3.0), at(4.0, advantage=-1.0, segment=1)]
    tokens = tensors(batch)
    objective = Gspo(clip_low=0.9, clip_high=9.0)
    assert losses(objective, *batch) == pytest.approx([-1.5, -1.5, 4.0])
    assert objective.terms(tokens).ratio.tolist() == pytest.approx([0.5, 0.5, 4.0])
    assert gradient_of(tokens, loss_of(tokens, objective)) == pytest.approx([-1.5, -1.5, 4.0])


@settings(max_examples=examples(60))
@given(batch=batches())
def test_gspo_has_the_gradient_of_its_papers_objective_for_sequences(batch: list[Token]):
    """The form for tokens holds s fixed, yet gives the gradient through s, for equal weights."""
    objective = Gspo(clip_low=0.5, clip_high=1.5)
    of_sequences = partial(oracle.gspo_of_sequences, clip_low=0.5, clip_high=1.5)
    batch = [t for t in batch if t.is_scored]
    assume(not is_at_a_kink(batch, asdict(objective)))
    tokens = tensors(batch)
    loss = loss_of(tokens, objective)
    assert loss.loss.item() == pytest.approx(of_sequences(batch), abs=1e-9)
    paper = oracle.differences(batch, of_sequences)
    assert gradient_of(tokens, loss) == pytest.approx(paper, rel=1e-6, abs=1e-7)


def test_cispo_bounds_the_weight_and_keeps_the_gradient():
    """A = 2, weights 0.8, 1.1, 1.5 of ratios 0.5, 1.1, 9."""
    batch = [at(r, advantage=2.0) for r in (0.5, 1.1, 9.0)]
    tokens = tensors(batch)
    loss = loss_of(tokens, Cispo(clip_low=0.2, clip_high=0.5))
    assert gradient_of(tokens, loss) == pytest.approx([-1.6, -2.2, -3.0])
    assert loss.sums["clipped_low"] == 1
    assert loss.sums["clipped_high"] == 1


@each_objective
def test_the_docstring_specifies_the_loss_and_the_table_says_whether_it_depends_on_old(
    row: ObjectiveRow,
):
    text = row.options.__doc__ or ""
    assert "loss = " in text
    assert "Source" in text
    slopes = [
        gradient_of(tokens, loss_of(tokens, row.options()))
        for tokens in (tensors([at(ratio, advantage=1.0)]) for ratio in (1.0, 0.5))
    ]
    assert (slopes[0] != slopes[1]) == row.uses_old


@each_objective
@settings(max_examples=examples(40))
@given(batch=batches())
def test_tokens_that_are_not_scored_change_nothing(row: ObjectiveRow, batch: Any):
    """They are NaN in every array here."""
    tokens = tensors(batch)
    loss = loss_of(tokens, row.options())
    alone = tensors([t for t in batch if t.is_scored])
    assert loss.loss.item() == pytest.approx(loss_of(alone, row.options()).loss.item(), abs=1e-12)
    slopes = gradient_of(tokens, loss)
    assert all(math.isfinite(slope) for slope in slopes)
    assert {s for s, t in zip(slopes, batch, strict=True) if not t.is_scored} <= {0.0}
    assert loss.sums["num_scored"] == sum(t.is_scored for t in batch)


@each_objective
@settings(max_examples=examples(40))
@given(batch=batches(), seed=st.randoms(use_true_random=False), data=st.data())
def test_packing_changes_nothing(
    row: ObjectiveRow, batch: list[Token], seed: random.Random, data: st.DataObject
):
    """Segments in another order, cut into two micro-batches, with a dummy beside them."""
    segments = sorted({t.segment for t in batch})
    seed.shuffle(segments)
    cut = data.draw(st.integers(0, len(segments)))
    order = sorted(range(len(batch)), key=lambda i: segments.index(batch[i].segment))
    first = [i for i in order if batch[i].segment in segments[:cut]]
    second = [i for i in order if batch[i].segment in segments[cut:]]
    dummy = replace(batch[0], weight=0.0, is_scored=True)

    tokens = tensors(batch)
    whole = loss_of(tokens, row.options())
    slopes = dict(enumerate(gradient_of(tokens, whole)))
    pieces, piece_slopes = [], {}
    for piece in (first, second):
        tokens = tensors([*renumbered([batch[i] for i in piece]), replace(dummy, segment=0)])
        pieces.append(loss_of(tokens, row.options()))
        *of_piece, of_dummy = gradient_of(tokens, pieces[-1])
        assert of_dummy == 0.0
        piece_slopes.update(zip(piece, of_piece, strict=True))

    assert piece_slopes == pytest.approx(slopes, rel=1e-9, abs=1e-12)
    for name, total in whole.sums.items():
        parts = sum(piece.sums[name].item() for piece in pieces)
        assert parts == pytest.approx(total.item(), rel=1e-9, abs=1e-9), name
    for name, largest in whole.maxima.items():
        assert max(piece.maxima[name].item() for piece in pieces) == largest.item(), name


EXTREMES = st.sampled_from([-1e4, -100.0, -20.0, -1e-30, 0.0])


@each_objective
@settings(max_examples=examples(100))
@given(rows=st.lists(st.tuples(EXTREMES, EXTREMES, st.sampled_from([-1e3, 0.0, 1e3])), min_size=1))
def test_extreme_log_probabilities_give_finite_losses_and_gradients(row: ObjectiveRow, rows: Any):
    batch = [token(logprob=lp, old=old, advantage=a) for lp, old, a in rows]
    tokens = tensors(batch, torch.float32)
    loss = loss_of(tokens, row.options())
    assert math.isfinite(loss.loss.item())
    assert all(math.isfinite(slope) for slope in gradient_of(tokens, loss))
    assert all(math.isfinite(value.item()) for value in loss.sums.values())


@each_objective
@settings(max_examples=examples(30))
@given(batch=batches(gap=30.0))
def test_no_advantage_means_no_gradient_and_the_gradient_favours_good_tokens(
    row: ObjectiveRow, batch: list[Token]
):
    tokens = tensors([replace(t, advantage=0.0) for t in batch])
    assert set(gradient_of(tokens, loss_of(tokens, row.options()))) == {0.0}
    tokens = tensors([token(advantage=1.0), token(advantage=-1.0, segment=1)])
    assert not row.options().terms(tokens).ratio.requires_grad
    good, bad = gradient_of(tokens, loss_of(tokens, row.options()))
    assert good < 0
    # Imitation leaves bad steps alone.
    assert bad == 0 if row.name == "sft" else bad > 0


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("trpo", {}, "no objective is called 'trpo'; there are ppo, gspo, cispo, reinforce, sft"),
        ("gspo", {"epsilon": 1}, r"gspo has no option 'epsilon'; its options: gspo.clip_low"),
        ("reinforce", {"clip_low": 1}, "its options: none"),
        ("ppo", {"clip_low": 1.5}, "ppo.clip_low must be at most 1: got '1.5'"),
        ("ppo", {"clip_high": True}, "ppo.clip_high must be a number: got 'True'"),
        ("cispo", {"clip_high": "nan"}, "cispo.clip_high must be a finite number: got 'nan'"),
    ],
)
def test_a_wrong_name_or_option_is_refused(name: str, options: dict[str, Any], message: str):
    with pytest.raises(OptionError, match=message):
        configure_objective(name, options)


def test_the_help_of_the_flag_names_every_objective():
    text = help_texts(TrainConfig)["objective"]
    assert [row.name for row in OBJECTIVES if row.name not in text] == []
    assert {row.name for row in OBJECTIVES if not row.uses_old} == {*WITHOUT_RATIOS}
