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
    engine.load(path, "float32")
    return engine


def _answers(
    engine: TransformersEngine, prompts: Sequence[tuple[int, ...]], max_new_tokens: int = 4
) -> list[Response]:
    requests = [Request(prompt_ids=prompt, seed=n) for n, prompt in enumerate(prompts)]
    return engine.generate(requests, Sampling(temperature=1.0, max_new_tokens=max_new_tokens))


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
    _assert_the_model_s(engine, prompts, answers)


def _assert_the_model_s(
    engine: TransformersEngine, prompts: Sequence[tuple[int, ...]], answers: Sequence[Response]
) -> None:
    """Compare the log-probabilities with those of a pass over each row alone."""
    model: Any = engine._model  # pyright: ignore
    for prompt, answer in zip(prompts, answers, strict=True):
        ids = torch.tensor([[*prompt, *answer.token_ids]], device=model.device)
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


def test_rows_that_end_early_or_outgrow_their_cache_leave_the_others_alone(tmp_path: Path):
    engine = _engine(save_tiny_model(tmp_path / "model", "llama"))
    engine.end_ids = frozenset(range(3))
    prompts = [(5, 6 + n) * (n + 1) for n in range(9)]
    answers = _answers(engine, prompts, max_new_tokens=90)
    lengths = sorted(len(answer.token_ids) for answer in answers)
    assert lengths[0] < lengths[4] < 64 < lengths[-1]
    _assert_the_model_s(engine, prompts, answers)


def test_what_prompts_begin_with_is_read_once_and_for_later_batches_too(tmp_path: Path):
    engine = _engine(save_tiny_model(tmp_path / "model", "llama"))
    begin = tuple(range(5, 25))
    prompts = [(*begin, *PROMPTS[0]), (*begin, *PROMPTS[1]), (*begin, *PROMPTS[2])]
    model: Any = engine._model  # pyright: ignore
    sizes: list[tuple[int, ...]] = []

    def note(_: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> None:
        sizes.append(tuple(options["input_ids"].shape))

    hook = model.register_forward_pre_hook(note, with_kwargs=True)
    for prefills in ([(1, 20), (3, 5)], [(3, 5)]):
        answers = _answers(engine, prompts)
        assert [size for size in sizes if size[1] > 1] == prefills
        sizes.clear()
    _answers(engine, [(*begin, 7)])
    assert sizes[0] == (1, 1), "one prompt begins so too"
    engine.forget()
    sizes.clear()
    alone = _answers(engine, prompts[:1])
    assert sizes[0] == (1, 23)
    hook.remove()
    _assert_same(answers[:1], alone)
    _assert_the_model_s(engine, prompts, answers)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_step_that_is_captured_is_replayed_in_later_batches(tmp_path: Path):
    engine = _engine(save_tiny_model(tmp_path / "model", "llama"))
    for first in (5, 6):
        prompts = [(first, 6 + n) * (n + 1) for n in range(9)]
        _assert_the_model_s(engine, prompts, _answers(engine, prompts, max_new_tokens=90))
    kept = engine._decoder._fixed  # pyright: ignore
    assert all(cache._graph is not None for cache in kept.values())
