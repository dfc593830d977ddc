"""A policy that a vLLM server samples for: what it is told, and what is refused."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from graphcredit.collector.options import LanguageOptions
from graphcredit.collector.policies.engines import http, vllm_server
from graphcredit.collector.policies.engines.base import Request, Sampling
from graphcredit.collector.policies.engines.http import checked_url, exchange
from graphcredit.collector.policies.engines.transformers import TransformersEngine
from graphcredit.collector.policies.engines.vllm_server import VllmServerEngine
from graphcredit.collector.policies.language import policy as language
from graphcredit.collector.policies.registry import parse_policy
from graphcredit.store import open_store, read_steps
from graphcredit.store.errors import EngineError, OptionError
from tests.collector.fake_vllm import FakeVllm, serving
from tests.collector.recomputed import agreement, play
from tests.collector.talkers import save_talker

REQUESTS = [Request(prompt_ids=(5,) * n, seed=n) for n in (1, 4, 9, 40)]
SAMPLING = Sampling(temperature=0.7, max_new_tokens=6)
GENERATE = "/inference/v1/generate"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(http, "_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(vllm_server.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(language, "_engines", {})


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    root = tmp_path_factory.mktemp("policies")
    return [save_talker(root / f"policy-{seed:06d}", seed=seed) for seed in range(3)]


@pytest.fixture
def fake(models: list[str]) -> Iterator[FakeVllm]:
    with serving(FakeVllm(model=models[0])) as found:
        yield found


def _loaded(fake: FakeVllm, model: str) -> VllmServerEngine:
    engine = VllmServerEngine(fake.url)
    engine.load(model, "float32")
    return engine


def test_answers_are_those_of_the_weights_that_the_server_was_given(
    fake: FakeVllm, models: list[str]
):
    engine, here = _loaded(fake, models[0]), TransformersEngine()
    for model in models:
        engine.load(model)
        here.load(model)
        found = engine.generate(REQUESTS, SAMPLING)
        for one, other in zip(found, here.generate(REQUESTS, SAMPLING), strict=True):
            assert one.token_ids == other.token_ids
            assert one.logprobs == pytest.approx(other.logprobs, abs=1e-5)
        assert engine.end_ids == here.end_ids
    assert fake.loaded() == models
    assert engine.room == 2048
    greedy = engine.generate(REQUESTS[:1], Sampling(temperature=0.0, max_new_tokens=3))
    assert greedy[0].logprobs == [0.0] * 3


def test_weights_that_the_server_has_are_not_loaded_again(fake: FakeVllm, models: list[str]):
    _loaded(fake, models[1])
    num_sampled = [path for path, _ in fake.asked].count(GENERATE)
    _loaded(fake, models[1])
    assert fake.loaded() == [models[1]]
    assert [path for path, _ in fake.asked].count(GENERATE) == num_sampled
    _loaded(fake, models[2])
    fake.start_again()
    _loaded(fake, models[2])
    assert fake.loaded() == [models[1], models[2], models[2]]


def test_an_answer_is_cut_off_where_the_servers_room_ends(fake: FakeVllm, models: list[str]):
    engine = _loaded(fake, models[0])
    engine.room = 12
    found = engine.generate([Request(prompt_ids=(5,) * n, seed=n) for n in (11, 9, 3)], SAMPLING)
    assert [len(response.token_ids) for response in found] == [1, 3, 6]


def test_a_server_that_keeps_the_weights_of_before_is_refused(fake: FakeVllm, models: list[str]):
    _loaded(fake, models[0])
    fake.keeps_weights = True
    with pytest.raises(EngineError, match=r"told to load .*000001, and samples exactly as"):
        _loaded(fake, models[1])
    assert fake.label == "graphcredit/loading"


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("logprobs_mode", "raw_logprobs", r"raw_logprobs. Start it again with --logprobs-"),
        ("dtype", "torch.bfloat16", r"computes in bfloat16. Start it again with --dtype flo"),
    ],
)
def test_a_server_that_was_started_otherwise_is_refused(
    fake: FakeVllm, models: list[str], setting: str, value: str, message: str
):
    setattr(fake, setting, value)
    with pytest.raises(EngineError, match=message):
        _loaded(fake, models[0])


def test_a_server_that_cannot_empty_its_cache_is_refused(fake: FakeVllm, models: list[str]):
    fake.is_busy = True
    with pytest.raises(EngineError, match="must have no request under way when its weights"):
        _loaded(fake, models[0])
    assert [path for path, _ in fake.asked].count("/reset_prefix_cache") == 10


def test_answers_of_a_server_that_was_started_again_are_refused(fake: FakeVllm, models: list[str]):
    engine = _loaded(fake, models[1])
    fake.start_again()
    with pytest.raises(EngineError, match=r"stay those that it was given, .* sampled with default"):
        engine.generate(REQUESTS, SAMPLING)
    _loaded(fake, models[2])
    with pytest.raises(EngineError, match=r"another process gave it other weights"):
        engine.generate(REQUESTS, SAMPLING)


def test_a_connection_that_fails_is_tried_three_times(fake: FakeVllm, models: list[str]):
    engine = _loaded(fake, models[0])
    fake.num_dropped = 2
    assert len(engine.generate(REQUESTS[:1], SAMPLING)) == 1
    fake.num_dropped = 3
    with pytest.raises(EngineError, match=r"must be running at http.*, 3 times. Start it as"):
        engine.generate(REQUESTS[:1], SAMPLING)
    assert fake.num_dropped == 0


def test_weights_are_loaded_by_one_request_only(fake: FakeVllm, models: list[str]):
    fake.statuses["/collective_rpc"] = 503
    with pytest.raises(EngineError, match=r"answered 503, .*it is broken"):
        _loaded(fake, models[1])
    assert fake.loaded() == [models[1]]


def test_a_server_that_does_not_run_or_answer_is_told_of():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = checked_url(f"http://127.0.0.1:{silent.getsockname()[1]}/")
        with pytest.raises(EngineError, match=r"answer within 0.05 s: http://127.0.0.1:\d+/x did"):
            exchange(address, "/x", seconds=0.05)
    with pytest.raises(EngineError, match=r"running at http://127.0.0.1:\d+: .*refused, 3 times"):
        exchange(address, "/x", seconds=0.05)


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/server_info", 404, r"Is it vLLM 0.32 or later\? Start it with VLLM_SERVER_DEV_MODE=1"),
        (GENERATE, 403, "Start it with VLLM_SERVER_DEV_MODE=1 and --enable-scale-out"),
        (GENERATE, 302, "must answer /inference/v1/generate with status 200"),
        ("/collective_rpc", 500, "'.*it is broken.*'. Look at its log, then give"),
    ],
)
def test_an_error_of_the_server_is_shown_with_what_to_do(
    fake: FakeVllm, models: list[str], path: str, status: int, message: str
):
    fake.statuses[path] = status
    with pytest.raises(EngineError, match=message):
        _loaded(fake, models[0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"token_ids": [7]}, r"sent the tokens \[7\] with 6 log-probabilities"),
        ({"logprobs": None}, "TypeError.* is wrong. Use that version"),
        ({"token_ids": []}, r"must have 1 to 6 tokens"),
        ({"weight_versions": []}, "sampled with no label"),
    ],
)
def test_an_answer_that_is_not_vllms_is_refused(
    fake: FakeVllm, models: list[str], changes: dict[str, Any], message: str
):
    engine = _loaded(fake, models[0])
    asked = {"token_ids": [5], "sampling_params": {"temperature": 1.0, "max_tokens": 6}}
    asked["sampling_params"] |= {"logprobs": 0, "ignore_eos": True, "stop_token_ids": [], "seed": 1}
    (choice,) = fake.answer(GENERATE, asked)["choices"]
    fake.answers[GENERATE] = {"choices": [{**choice, **changes}]}
    with pytest.raises(EngineError, match=message):
        engine.generate(REQUESTS[:1], SAMPLING)


@pytest.mark.parametrize(
    "url",
    ["127.0.0.1:8000", "http://127.0.0.1", "ftp://a:1", "http://a:1/v1", "http://u:p@a:1", "http:"],
)
def test_what_is_no_url_of_a_server_is_refused(models: list[str], url: str):
    with pytest.raises(OptionError, match=r"must be the URL of a vLLM server, http://HOST:PORT"):
        parse_policy(f"vllm-server:{models[0]}@{url}", LanguageOptions())


def test_a_server_that_is_not_named_is_that_of_this_machine(models: list[str]):
    policy = parse_policy(f"vllm-server:{models[0]}", LanguageOptions())
    assert isinstance(policy, language.LanguagePolicy)
    assert (policy.server, str(policy.model.path)) == ("http://127.0.0.1:8000", models[0])


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_the_trainer_recomputes_the_logged_logprobs(
    tmp_path: Path, fake: FakeVllm, models: list[str], workers: int
):
    played = play(
        tmp_path / "store", f"vllm-server:{models[1]}@{fake.url}", temperature=0.7, workers=workers
    )
    assert played.num_trajectories == 6
    assert fake.loaded() == [models[1]]
    steps = agreement(tmp_path / "store", models[1])
    assert steps.num_steps == 2 * 3 * 4
    assert steps.largest < 1e-4
    (table, *_) = read_steps(open_store(tmp_path / "store"), columns=("extra", "policy_version"))
    assert json.loads(table["extra"][0].as_py())["engine"] == "vllm-server"
    assert set(table["policy_version"].to_pylist()) == {"policy-000001"}


def test_no_step_is_played_twice_after_a_server_was_lost(
    tmp_path: Path, fake: FakeVllm, models: list[str]
):
    policy, root = f"vllm-server:{models[1]}@{fake.url}", tmp_path / "store"
    lost = {"at": 12}
    honest = fake.answer

    def answer(path: str, body: Any) -> Any:
        if path == GENERATE:
            lost["at"] -= 1
            if not lost["at"]:
                fake.start_again()
        return honest(path, body)

    fake.answer = answer
    with pytest.raises(EngineError, match="was started again"):
        play(root, policy, concurrency=2)
    assert play(root, policy).num_trajectories > 0
    again = play(root, policy)
    assert (again.num_already_complete, again.num_trajectories) == (6, 0)
    assert fake.loaded() == [models[1], models[1]]
    assert agreement(root, models[1]).largest < 1e-4
