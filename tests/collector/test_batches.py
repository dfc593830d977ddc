"""A batch of transformers: each distinct prompt is read once, and no row depends on another."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from graphcredit.collector.policies.engines.base import Request, Response, Sampling
from graphcredit.collector.policies.engines.transformers import TransformersEngine
from tests.trainer.models import save_tiny_model

torch.set_num_threads(1)

PROMPTS = [(5, 6, 7), (8,), (9, 10, 11, 12, 13)]


def _engine(path: str) -> TransformersEngine:
    engine = TransformersEngine()
    engine.load(path)
    return engine


def _answers(
    engine: TransformersEngine, prompts: Sequence[tuple[int, ...]], first_seed: int = 0
) -> list[Response]:
    requests = [Request(prompt_ids=prompt, seed=first_seed + n) for n, prompt in enumerate(prompts)]
    return engine.generate(requests, Sampling(temperature=1.0, max_new_tokens=4))


def _rows_read(engine: TransformersEngine) -> list[int]:
    """Return a list that is told how many prompts are read at a time, from now on."""
    model: Any = engine._model  # pyright: ignore
    counts: list[int] = []

    def count(_: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> None:
        cache = options["past_key_values"]
        if cache is not None and cache.get_seq_length() == 0:
            counts.append(len(options["input_ids"]))

    model.register_forward_pre_hook(count, with_kwargs=True)
    return counts


def _assert_same(found: Sequence[Response], expected: Sequence[Response]) -> None:
    assert [answer.token_ids for answer in found] == [answer.token_ids for answer in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-5)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("llama", {}),
        ("mistral", {"sliding_window": 3}),
        ("qwen2", {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1}),
    ],
)
def test_logprobs_are_those_of_the_model_with_each_kind_of_cache(
    tmp_path: Path, kind: str, settings: dict[str, Any]
):
    engine = _engine(save_tiny_model(tmp_path / "model", kind, **settings))
    counts = _rows_read(engine)
    prompts = [*PROMPTS, PROMPTS[0]]
    answers = _answers(engine, prompts)
    assert counts == [3], "the prompt that is there twice is read once"
    model: Any = engine._model  # pyright: ignore
    for prompt, answer in zip(prompts, answers, strict=True):
        ids = torch.tensor([[*prompt, *answer.token_ids]])
        logprobs = model(input_ids=ids, past_key_values=None, use_cache=False).logits[0]
        expected = logprobs[len(prompt) - 1 : -1].log_softmax(-1)
        drawn = expected[range(len(answer.token_ids)), answer.token_ids]
        assert answer.logprobs == pytest.approx(drawn.tolist(), abs=1e-5)


def test_with_longrope_no_row_is_so_long_that_it_turns_those_beside_it(tmp_path: Path):
    rope = {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "short_factor": [1.0] * 8,
        "long_factor": [4.0] * 8,
        "original_max_position_embeddings": 20,
    }
    path = save_tiny_model(tmp_path / "model", "llama", rope_parameters=rope)
    engine = _engine(path)
    assert engine.room == 20
    long = tuple(range(5, 23))
    beside = _answers(engine, [*PROMPTS, long])
    assert len(beside[-1].token_ids) == 2, "it ends where the room does"
    _assert_same(beside[:3], _answers(_engine(path), PROMPTS))
