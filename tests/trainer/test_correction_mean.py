"""Importance weights of mean 1 over an optimizer step: the same whatever its packing."""

import json
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from graphcredit.store.errors import OptionError
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.preview import preview
from graphcredit.trainer.training import train
from tests.trainer import rank_worker, shard_worker
from tests.trainer.logs import random_episodes, token_store
from tests.trainer.models import save_tiny_model
from tests.trainer.ranks import run_ranks

_OPTIONS: dict[str, Any] = {"device": "cpu", "mismatch_sample": 0, "tensorboard": False}
_OPTIONS |= {"batch_size": 9, "learning_rate": 1e-3, "kl_coefficient": 0.0}


def _config(tmp_path: Path, name: str, **options: Any) -> TrainConfig:
    model, store = tmp_path / "model", tmp_path / "store"
    if not model.exists():
        save_tiny_model(model, "llama", initializer_range=0.05)
        token_store(store, random_episodes(0, 8))
    given = {**_OPTIONS, **options}
    return TrainConfig(store=store, out=tmp_path / name, model=str(model), **given)


def _rows(config: TrainConfig) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (config.out / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("batch_size", [9, 99])
def test_the_first_loss_is_divided_by_the_mean_weight(tmp_path: Path, batch_size: int):
    """Of several updates, and of a single one, which needs the pass that it saves otherwise."""
    plain = _config(tmp_path, "plain", batch_size=batch_size)
    ours = _config(tmp_path, "ours", batch_size=batch_size, normalise_correction=True)
    assert preview(ours, num_processes=1)["passes"] == ["start"]
    train(plain)
    train(ours)
    before, after = _rows(plain)[0], _rows(ours)[0]
    assert before["correction_mean"] < 0.9
    assert after["correction_mean"] == pytest.approx(before["correction_mean"], rel=1e-5)
    expected = before["policy_loss"] / before["correction_mean"]
    assert after["policy_loss"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_packing_and_processes_change_nothing(tmp_path: Path):
    changed: dict[str, Any] = {"normalise_correction": True, "correction": "sequence-mask"}
    changed["correction_low"] = 1e-9
    whole = _config(tmp_path, "whole", max_tokens=512, **changed)
    parts = _config(tmp_path, "parts", max_tokens=24, **changed)
    train(whole)
    assert run_ranks(2, shard_worker.trained, parts) == [0, 0]
    found, expected = (load_file(c.out / "model" / "model.safetensors") for c in (parts, whole))
    rank_worker.assert_close(found, expected)


def test_there_must_be_weights_to_normalise(tmp_path: Path):
    for options in ({"correction": "none"}, {"old_logprobs": "behaviour"}):
        with pytest.raises(OptionError, match="there must be some"):
            _config(tmp_path, "no", normalise_correction=True, **options)
