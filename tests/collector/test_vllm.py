"""Sampling with vLLM, against transformers and the trainer; docs/policies.md says how to run it.

A process has room for one engine, so each test starts another process.
"""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from graphcredit.collector.policies.engines.base import Request, Response, Sampling
from graphcredit.store.errors import InputError
from tests.collector.recomputed import agreement, play
from tests.collector.talkers import CHAT_TEMPLATE, save_talker

pytest.importorskip("vllm", reason="vLLM is not installed; docs/policies.md says how")

REQUESTS = [Request(prompt_ids=(5,) * n, seed=n) for n in (1, 4, 9, 40)]


def _apart(function: Callable[..., Any], *arguments: Any) -> Any:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def _engine(path: str) -> Any:
    from graphcredit.collector.policies.engines.vllm import VllmEngine

    engine = VllmEngine()
    engine.load(path)
    return engine


def _largest_gap(path: str, responses: list[Response], temperature: float) -> float:
    model: Any = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    gaps: list[float] = []
    for request, response in zip(REQUESTS, responses, strict=True):
        ids = torch.tensor([[*request.prompt_ids, *response.token_ids]])
        with torch.no_grad():
            logits = model(ids).logits[0, len(request.prompt_ids) - 1 : -1] / temperature
        logprobs = logits.log_softmax(-1)[range(len(response.token_ids)), response.token_ids]
        gaps.append((logprobs - torch.tensor(response.logprobs)).abs().max().item())
    return max(gaps)


def _gaps_of_each(paths: list[str], temperature: float) -> list[float]:
    sampling = Sampling(temperature=temperature, max_new_tokens=12)
    engine = _engine(paths[0])
    gaps: list[float] = []
    for number, path in enumerate(paths):
        if number:
            engine.load(path)
        gaps.append(_largest_gap(path, engine.generate(REQUESTS, sampling), temperature))
    return gaps


@pytest.mark.parametrize("is_tied", [False, True], ids=["untied", "tied"])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_logprobs_are_the_models_at_the_temperature_before_and_after_new_weights(
    tmp_path: Path, is_tied: bool, temperature: float
):
    paths = [
        save_talker(tmp_path / f"p-{seed}", seed=seed, tie_word_embeddings=is_tied)
        for seed in range(3)
    ]
    assert max(_apart(_gaps_of_each, paths, temperature)) < 1e-4


def _play(store: Path, path: str, temperature: float) -> None:
    play(store, f"vllm:{path}", temperature=temperature)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_the_trainer_recomputes_the_logged_logprobs(tmp_path: Path, temperature: float):
    model = save_talker(tmp_path / "policy-000001", chat_template=CHAT_TEMPLATE)
    _apart(_play, tmp_path / "store", model, temperature)
    found = agreement(tmp_path / "store", model)
    assert found.num_steps == 2 * 3 * 4
    assert found.largest < 1e-4


def _answers(path: str) -> tuple[list[Response], ...]:
    engine = _engine(path)
    sampling = Sampling(temperature=1.0, max_new_tokens=6)
    together = engine.generate(REQUESTS, sampling)
    alone = [engine.generate([request], sampling)[0] for request in REQUESTS]
    greedy = [Request(prompt_ids=(5, 6), seed=seed) for seed in range(3)]
    first = engine.generate(greedy, Sampling(temperature=0.0, max_new_tokens=4))
    engine.end_ids = frozenset(range(150))
    many = [Request(prompt_ids=(200, seed), seed=seed) for seed in range(40)]
    ended = engine.generate(many, Sampling(temperature=1.0, max_new_tokens=4))
    return together, alone, first, ended


def test_answers_are_those_of_their_seeds_and_end_with_an_end_token(tmp_path: Path):
    together, alone, greedy, ended = _apart(_answers, save_talker(tmp_path / "p-0"))
    assert [answer.token_ids for answer in together] == [answer.token_ids for answer in alone]
    assert greedy[0] == greedy[1] == greedy[2]
    assert set(greedy[0].logprobs) == {0.0}
    assert {len(answer.token_ids) for answer in ended} == {1, 2, 3, 4}
    for answer in ended:
        assert all(token >= 150 for token in answer.token_ids[:-1])


def _load_both(first: str, second: str) -> None:
    _engine(first).load(second)


def test_weights_of_another_shape_are_refused(tmp_path: Path):
    paths = [save_talker(tmp_path / "p-0"), save_talker(tmp_path / "p-1", intermediate_size=64)]
    with pytest.raises(InputError, match=r"must have the same config\.json"):
        _apart(_load_both, *paths)
