"""Masks and adaptive coefficients by hand, and in a training that was killed."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from graphcredit.store.errors import OptionError
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.loss.coefficients import Coefficients
from graphcredit.trainer.loss.masks import Masks, policy_mask
from graphcredit.trainer.loss.objectives.reinforce import Reinforce
from graphcredit.trainer.options import LossOptions
from graphcredit.trainer.training import train
from graphcredit.trainer.training_run import TrainingRun
from tests.trainer.logs import random_episodes, token_store
from tests.trainer.models import save_tiny_model
from tests.trainer.oracle import Token
from tests.trainer.token_batches import gradient_of, loss_of, tensors, token


def _kept(masks: Masks, *batch: Token) -> list[bool]:
    return policy_mask(tensors(batch), masks)[0].tolist()


def test_a_bad_response_that_the_policy_has_left_is_masked_whole_and_a_good_one_is_not():
    """Gaps of 0.8 and 0.4 have a mean of 0.6; 0.8 and 0 one of 0.4."""

    def left(gap: float, advantage: float, segment: int) -> Token:
        return token(logprob=-2.0, behaviour=-2.0 + gap, advantage=advantage, segment=segment)

    batch = [left(0.8, -1.0, 0), left(0.4, -1.0, 0), left(0.8, -1.0, 1), left(0.0, -1.0, 1)]
    batch += [left(0.9, 1.0, 2)]
    masks = Masks(off_policy=0.5)
    assert _kept(masks, *batch) == [False, False, True, True, True]
    tokens = tensors(batch)
    loss = loss_of(tokens, Reinforce(), masks=masks, kl_coefficient=0.5, kl_estimator="k1")
    assert gradient_of(tokens, loss) == pytest.approx([0.5, 0.5, 1.5, 1.5, -0.5])
    assert loss.sums["off_policy_masked"] == 2


def test_of_each_response_the_tokens_of_the_highest_entropy_count_rounded_up():
    """0.4 of four tokens is 2, of three 2, of one 1; of equal entropies the earlier one counts."""
    rows = [(0, 0.1), (1, 2.0), (0, 0.9), (1, 2.0), (2, 0.0), (0, 0.5), (1, 2.0), (0, 0.3)]
    batch = [token(segment=segment, entropy=entropy) for segment, entropy in rows]
    kept = [False, True, True, True, True, True, False, False]
    assert _kept(Masks(entropy_share=0.4), *batch) == kept
    assert all(_kept(Masks(entropy_share=1.0), *batch))


def _options(**options: Any) -> LossOptions:
    return LossOptions(**options)


def test_the_coefficient_of_the_divergence_follows_its_target_by_hand():
    """Relative errors 1 and -0.5 are cut to ±0.2, and -0.1 is not; a tenth of each."""
    options = _options(kl_target=0.1)
    found = Coefficients(kl=0.01, entropy=0.0)
    for kl, factor in ((0.2, 1.02), (0.05, 0.98), (0.09, 0.99)):
        assert found.after(options, {"kl": kl}).kl == pytest.approx(0.01 * factor)
    assert found.after(_options(), {"kl": 9.0}) == found


def test_the_bonus_grows_while_the_entropy_is_low_and_is_off_while_it_is_high():
    options = _options(entropy_target=0.5, entropy_step=0.1)
    found = Coefficients(kl=0.0, entropy=0.0)
    bonuses = []
    for entropy in (0.4, 0.3, 0.6, 0.5, 0.9, 0.9):
        found = found.after(options, {"entropy": entropy})
        bonuses.append((round(found.entropy, 6), round(found.entropy_bonus, 6)))
    assert bonuses == [(0.1, 0.1), (0.2, 0.2), (0.1, 0.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kl_target": 0.1, "kl_coefficient": 0.0}, "kl_coefficient sets it"),
        ({"entropy_share": 0.0}, "entropy_share must be above 0"),
        ({"entropy_share": 1.5}, "entropy_share must be at most 1"),
        ({"off_policy_limit": -1.0}, "off_policy_limit must be above 0"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any], message: str):
    with pytest.raises(OptionError, match=message):
        TrainConfig(store=Path(), out=Path(), model="m", **options)


def test_a_training_resumes_with_the_coefficients_that_it_had_adapted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = token_store(tmp_path / "s", random_episodes(0, 12))
    config = TrainConfig(
        store=store.root,
        out=tmp_path / "out",
        model=save_tiny_model(tmp_path / "m"),
        device="cpu",
        batch_size=8,
        max_tokens=64,
        learning_rate=1e-3,
        mismatch_sample=0,
        tensorboard=False,
        checkpoint_every=1,
        kl_target=0.5,
        entropy_target=4.4,
        entropy_share=0.5,
        off_policy_limit=2.0,
    )
    whole = train(config)
    expected = (tmp_path / "out" / "metrics.jsonl").read_text()
    assert '"kl_coefficient": 0.0098' in expected
    save = TrainingRun._save_checkpoint

    def killed(run: TrainingRun, num_done: int, *args: Any) -> None:
        save(run, num_done, *args)
        if num_done == 2:
            raise KeyboardInterrupt

    again = config.changed(out=tmp_path / "again")
    with monkeypatch.context() as patch:
        patch.setattr(TrainingRun, "_save_checkpoint", killed)
        with pytest.raises(KeyboardInterrupt):
            train(again)
    assert train(again)["num_updates"] == whole["num_updates"] > 2
    ours, theirs = (
        AutoModelForCausalLM.from_pretrained(tmp_path / d / "model").state_dict()
        for d in ("again", "out")
    )
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
