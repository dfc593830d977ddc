"""`--profile`: a trace of as many optimizer steps as asked for, and the same weights."""

import json
from pathlib import Path
from typing import Any

import pytest

from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.training import train
from tests.trainer.logs import random_episodes, token_store
from tests.trainer.models import save_tiny_model


def _train(tmp_path: Path, name: str, **options: Any) -> Path:
    config = TrainConfig(
        store=tmp_path / "s",
        out=tmp_path / name,
        model=str(tmp_path / "m"),
        device="cpu",
        mismatch_sample=0,
        tensorboard=False,
        **options,
    )
    train(config)
    return config.out


@pytest.mark.parametrize(
    ("batch_size", "asked", "traced"), [(4, 2, 2), (4, 99, 3), (1000, 1, 1), (4, 0, None)]
)
def test_the_trace_has_the_steps_that_were_asked_for(
    tmp_path: Path, batch_size: int, asked: int, traced: int | None
):
    """16 steps in updates of 4 are 4 updates; the first is left out where others follow."""
    token_store(tmp_path / "s", random_episodes(0, 16, max_steps=1))
    save_tiny_model(tmp_path / "m")
    options = {"batch_size": batch_size, "old_logprobs": "behaviour", "kl_coefficient": 0.0}
    out = _train(tmp_path, "traced", profile=asked, **options)
    path = out / "profile" / "rank-0.json"
    plain = _train(tmp_path, "plain", **options)
    assert not (plain / "profile").exists()
    weights = [(each / "model" / "model.safetensors").read_bytes() for each in (out, plain)]
    assert weights[0] == weights[1]
    if traced is None:
        assert not path.exists()
        return
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    names = [event.get("name", "") for event in events]
    assert sum(name.startswith("Optimizer.step#") for name in names) == traced
    assert [each.name for each in path.parent.iterdir()] == ["rank-0.json"]
