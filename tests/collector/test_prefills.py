"""Prompts that are asked again: read once, for as long as the weights stay."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from graphcredit.collector.collection import collect
from graphcredit.collector.environments.registry import ENVIRONMENTS
from graphcredit.collector.options import CollectOptions
from graphcredit.collector.policies.engines.base import Request, Response, Sampling
from graphcredit.collector.policies.engines.kv_cache import Prefill, Prefills, can_part
from graphcredit.collector.policies.engines.transformers import TransformersEngine
from graphcredit.collector.policies.language import policy as language
from tests.collector.talkers import save_talker
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


def test_a_prompt_is_read_once_and_its_answers_are_those_of_a_prompt_just_read(tmp_path: Path):
    path = save_tiny_model(tmp_path / "model")
    engine = _engine(path)
    counts = _rows_read(engine)
    _answers(engine, PROMPTS)
    again = [PROMPTS[1], (20, 21), PROMPTS[1], PROMPTS[2]]
    found = _answers(engine, again, first_seed=50)
    known = _answers(engine, again[::-1], first_seed=90)
    assert counts == [3, 1], "the third batch had nothing new"
    _assert_same(found, _answers(_engine(path), again, first_seed=50))
    _assert_same(known, _answers(_engine(path), again[::-1], first_seed=90))


def test_other_weights_read_all_prompts_again(tmp_path: Path):
    first, second = (save_tiny_model(tmp_path / f"{n}", seed=n) for n in range(2))
    engine = _engine(first)
    before = _answers(engine, PROMPTS)
    engine.load(second)
    found = _answers(engine, PROMPTS)
    _assert_same(found, _answers(_engine(second), PROMPTS))
    assert found != before


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("mistral", {"sliding_window": 3}),
        ("qwen2", {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1}),
    ],
)
def test_what_forgets_tokens_is_never_kept(tmp_path: Path, kind: str, settings: dict[str, Any]):
    engine = _engine(save_tiny_model(tmp_path / "model", kind, **settings))
    counts = _rows_read(engine)
    for _ in range(2):
        prompts = [*PROMPTS, PROMPTS[0]]
        for prompt, answer in zip(prompts, _answers(engine, prompts), strict=True):
            ids = torch.tensor([[*prompt, *answer.token_ids]])
            model: Any = engine._model  # pyright: ignore
            logprobs = model(input_ids=ids, past_key_values=None, use_cache=False).logits[0]
            expected = logprobs[len(prompt) - 1 : -1].log_softmax(-1)
            drawn = expected[range(len(answer.token_ids)), answer.token_ids]
            assert answer.logprobs == pytest.approx(drawn.tolist(), abs=1e-5)
    assert counts == [3, 3]


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
    counts = _rows_read(engine)
    long = tuple(range(5, 23))
    beside = _answers(engine, [*PROMPTS, long])
    assert len(beside[-1].token_ids) == 2, "it ends where the room does"
    _assert_same(_answers(engine, [*PROMPTS, long]), beside)
    assert counts == [4]
    _assert_same(beside[:3], _answers(_engine(path), PROMPTS))


def _prefill(num_tokens: int) -> Prefill:
    states = torch.zeros(num_tokens, 2, 8)
    return Prefill(layers=((states, states),), logits=torch.zeros(10))


def test_the_prompts_asked_longest_ago_are_dropped_for_want_of_room():
    one = _prefill(4)
    assert one.num_bytes == (2 * 4 * 2 * 8 + 10) * 4
    prefills = Prefills(max_bytes=2 * one.num_bytes)
    prefills.put((1,), one)
    prefills.put((2,), _prefill(4))
    assert prefills.get((1,)) is not None
    prefills.put((3,), _prefill(4))
    assert prefills.get((2,)) is None, "the first was asked since"
    assert prefills.get((1,)) is not None
    assert prefills.num_bytes == 2 * one.num_bytes
    prefills.put((4,), _prefill(1000))
    assert prefills.get((4,)) is None
    assert prefills.get((1,)) is not None, "what has no room at all drops nothing"


def test_what_is_kept_does_not_hold_the_batch_that_it_was_read_in():
    batch = torch.zeros(1000, 2, 8)
    view = Prefill(layers=((batch[:4], batch[4:8]),), logits=torch.zeros(10))
    prefills = Prefills(max_bytes=view.num_bytes)
    prefills.put((1,), view)
    kept = prefills.get((1,))
    assert kept is not None
    held = [kept.logits, *kept.layers[0]]
    assert sum(tensor.untyped_storage().nbytes() for tensor in held) == view.num_bytes


def test_a_layer_that_no_text_has_reached_is_not_parted():
    cache = DynamicCache()
    assert not can_part(cache), "nothing was read"
    cache.update(torch.zeros(1, 2, 3, 8), torch.zeros(1, 2, 3, 8), 0)
    assert can_part(cache)
    cache.layers.append(DynamicLayer())
    assert not can_part(cache)


def test_a_batch_without_room_is_read_again_and_answered_all_the_same(tmp_path: Path):
    path = save_tiny_model(tmp_path / "model")
    engine = TransformersEngine(kept_bytes=1)
    engine.load(path)
    counts = _rows_read(engine)
    for _ in range(2):
        _assert_same(_answers(engine, PROMPTS), _answers(_engine(path), PROMPTS))
    assert counts == [3, 3]


def test_a_collection_does_not_depend_on_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(language, "_engines", {})
    read: list[int] = []
    put = Prefills.put

    def spy(prefills: Prefills, prompt: tuple[int, ...], prefill: Prefill) -> None:
        read.append(len(prompt))
        put(prefills, prompt, prefill)

    monkeypatch.setattr(Prefills, "put", spy)
    model = save_talker(tmp_path / "model")
    found: list[list[int]] = []
    for run_id in ("r0", "r1"):
        collect(
            tmp_path / "store",
            ENVIRONMENTS["search"].list_tasks("2hop", num_tasks=2, seed=0),
            CollectOptions(
                policy=f"hf:{model}",
                template="tiny",
                max_new_tokens=4,
                group_size=3,
                max_steps=4,
                workers=0,
                run=run_id,
            ),
        )
        found.append(list(read))
        read.clear()
    assert found[0] == found[1] != []
    (_, engine) = language._engines["hf", ""]  # pyright: ignore[reportPrivateUsage]
    assert engine._prefills.num_bytes == 0  # pyright: ignore
