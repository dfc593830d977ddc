"""The comparison of logged and recomputed log-probabilities, and what it finds."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from graphcredit.store.errors import InputError
from graphcredit.trainer.batching.reader import BatchReader
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.data.parts import RunIteration
from graphcredit.trainer.data.step_filters import Filters
from graphcredit.trainer.data.step_index import StepIndex, read_index
from graphcredit.trainer.engine import sampler_check
from graphcredit.trainer.engine.engine import TrainingEngine
from graphcredit.trainer.engine.opening import open_engine
from graphcredit.trainer.engine.sampler_check import check_agreement, measure_agreement
from tests.trainer.logs import Row, episode, token_store, turn
from tests.trainer.models import save_tiny_model
from tests.trainer.packs import random_samples

SAMPLES = random_samples(6, seed=5)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_tiny_model(tmp_path_factory.mktemp("model"))


def _sampled(model: str, *, logged_at: float, sampled_at: float) -> list[list[Row]]:
    """Return steps whose log-probabilities are the model's own at a temperature."""
    plain = AutoModelForCausalLM.from_pretrained(model)
    rows: list[Row] = []
    for prompt, response in SAMPLES:
        with torch.no_grad():
            logits = plain(torch.tensor([[*prompt, *response]])).logits[0, len(prompt) - 1 : -1]
        logprobs = (logits / logged_at).log_softmax(-1)[range(len(response)), response]
        rows.append(turn(prompt, response, logprobs.tolist(), temperature=sampled_at))
    return [episode("a", *rows[:3]), episode("b", *rows[3:], success=False)]


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory, model: str) -> tuple[StepIndex, BatchReader]:
    """Steps as the model itself would have sampled them at temperature 1."""
    return _read(tmp_path_factory.mktemp("sampled"), _sampled(model, logged_at=1.0, sampled_at=1.0))


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> TrainingEngine:
    return _engine(save_tiny_model(tmp_path_factory.mktemp("other"), seed=1))


def _read(root: Path, trajectories: list[list[Row]]) -> tuple[StepIndex, BatchReader]:
    store = token_store(root, trajectories, num_shards=2)
    filters = Filters(max_tokens=100)
    index, _ = read_index([RunIteration(store, "r0", 0)], column="reach_advantage", filters=filters)
    return index, BatchReader(index)


def _config(model: str, **options: Any) -> TrainConfig:
    settings = {"store": Path(), "out": Path(), "device": "cpu", "max_tokens": 100, **options}
    return TrainConfig(model=model, **settings)


def _engine(model: str) -> TrainingEngine:
    return open_engine(model, _config(model))


def test_the_models_own_logprobs_agree_at_the_sampling_temperature(tmp_path: Path, model: str):
    index, reader = _read(tmp_path, _sampled(model, logged_at=0.7, sampled_at=0.7))
    found = measure_agreement(_engine(model), reader, index, np.arange(6), 100)
    assert found.num_steps == 6
    assert found.num_tokens == sum(len(response) for _, response in SAMPLES)
    assert found.largest < 1e-5
    assert check_agreement(_engine(model), reader, index, _config(model)) == []


def test_the_distribution_is_that_of_the_gaps(tmp_path: Path, model: str):
    trajectories = _sampled(model, logged_at=1.0, sampled_at=1.0)
    row = trajectories[1][2]
    # One token of the last step is logged 2 nats too low, one without a number.
    row["response_logprobs"][0] -= 2.0
    row["response_logprobs"][1] = float("nan")
    index, reader = _read(tmp_path, trajectories)
    found = measure_agreement(_engine(model), reader, index, np.arange(6), 40)
    num_tokens = sum(len(response) for _, response in SAMPLES) - 1
    assert found.num_tokens == num_tokens
    assert found.mean == pytest.approx(2 / num_tokens, rel=1e-3)
    assert found.shift == pytest.approx(2 / num_tokens, rel=1e-3)
    assert found.largest == pytest.approx(2.0, rel=1e-5)
    assert found.worst.endswith("w1-000000.parquet, row 2")


def test_another_model_is_refused_unless_it_is_allowed_and_older_weights_are_not_compared(
    model: str, sampled: tuple[StepIndex, BatchReader], other: TrainingEngine
):
    index, reader = sampled
    with pytest.raises(InputError, match="Likely another model"):
        check_agreement(other, reader, index, _config(model))
    assert check_agreement(other, reader, index, _config(model, mismatch_tolerance=1e9)) == []
    stale = replace(index, staleness=np.full(6, 2))
    (notice,) = check_agreement(other, reader, stale, _config(model))
    assert "were not compared" in notice


def test_the_sample_has_a_bounded_size_and_is_that_of_the_seed(
    model: str, sampled: tuple[StepIndex, BatchReader], monkeypatch: pytest.MonkeyPatch
):
    index, reader = sampled
    engine = _engine(model)
    read = reader.read
    seen: list[list[int]] = []

    def noted(micro: Any) -> Any:
        seen[-1].extend(micro.steps.tolist())
        return read(micro)

    monkeypatch.setattr(reader, "read", noted)
    monkeypatch.setattr(sampler_check, "_SAMPLE", 3)
    for seed in (1, 1, 2):
        seen.append([])
        config = _config(model, seed=seed)
        assert check_agreement(engine, reader, index, config) == []
    assert [len(set(steps)) for steps in seen] == [3, 3, 3]
    assert seen[0] == seen[1] != seen[2]
