"""The number of positions of a model, by its configuration alone."""

from typing import Any

import pytest
from transformers.models.auto.configuration_auto import AutoConfig

from graphcredit.trainer.data.step_lengths import length_limit

_LONGROPE: dict[str, Any] = {
    "rope_type": "longrope",
    "short_factor": [1.0] * 32,
    "long_factor": [4.0] * 32,
    "original_max_position_embeddings": 48,
}


def _scaled(rope_type: str, **values: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_theta": 10000.0, "rope_type": rope_type, **values}}


@pytest.mark.parametrize(
    ("kind", "settings", "limit"),
    [
        ("qwen2", {}, 100),
        ("gpt2", {}, 100),
        ("qwen2", {"use_sliding_window": True, "sliding_window": 7}, 100),
        ("llama", _scaled("linear", factor=4.0), 400),
        ("llama", _scaled("yarn", factor=4.0, original_max_position_embeddings=100), 400),
        ("llama", _scaled("yarn", factor=2.0, original_max_position_embeddings=50), 100),
        (
            "llama",
            _scaled(
                "llama3",
                factor=8.0,
                low_freq_factor=1.0,
                high_freq_factor=4.0,
                original_max_position_embeddings=12,
            ),
            100,
        ),
        ("llama", _scaled("dynamic", factor=4.0), 100),
        ("llama", {"rope_parameters": {"rope_theta": 10000.0, **_LONGROPE}}, 48),
    ],
)
def test_a_step_may_be_as_long_as_the_model_has_positions(
    kind: str, settings: dict[str, Any], limit: int
):
    config = AutoConfig.for_model(kind, max_position_embeddings=100, **settings)
    found = length_limit(config)
    assert found is not None
    assert found.num_tokens == limit


def test_what_has_no_positions_has_no_limit():
    assert length_limit(AutoConfig.for_model("bloom")) is None
