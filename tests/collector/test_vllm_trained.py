"""vLLM, in a process and as a server, loads what the trainer writes; docs/policies.md says how."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from graphcredit.collector.policies.engines.base import Request, Response, Sampling
from graphcredit.collector.policies.engines.vllm_server import VllmServerEngine
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.training import train
from tests.cli import loop_worlds
from tests.collector.recomputed import agreement, play
from tests.collector.talkers import CHAT_TEMPLATE, save_talker
from tests.collector.vllm_process import vllm_server
from tests.trainer.logs import random_episodes, token_store

pytest.importorskip("vllm", reason="vLLM is not installed; docs/policies.md says how")
pytestmark = pytest.mark.slow

REQUESTS = [Request(prompt_ids=(5,) * n, seed=n) for n in (1, 4, 9, 40)]
SAMPLING = Sampling(temperature=0.7, max_new_tokens=12)


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A policy to begin with, and what the trainer makes of it: of all weights, and with LoRA."""
    root = tmp_path_factory.mktemp("policies")
    start = save_talker(root / "policy-000000", chat_template=CHAT_TEMPLATE)
    store = token_store(root / "store", random_episodes(0, 12))
    found = {"start": start}
    for name, rank in (("full", 0), ("lora", 4)):
        config = TrainConfig(
            store=store.root,
            model=start,
            out=root / f"policy-{len(found):06d}-{name}" / "policy-000001",
            learning_rate=1e-2,
            batch_size=8,
            max_tokens=64,
            mismatch_tolerance=1e9,
            lora_rank=rank,
            device="cpu",
        )
        found[name] = str(train(config)["model"])
    return found


@pytest.fixture(scope="module")
def url(policies: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Any:
    log = tmp_path_factory.mktemp("server") / "vllm.log"
    with vllm_server(policies["start"], log) as found:
        yield found


def _largest_gap(path: str, responses: list[Response]) -> float:
    model: Any = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    gaps: list[float] = []
    for request, response in zip(REQUESTS, responses, strict=True):
        ids = torch.tensor([[*request.prompt_ids, *response.token_ids]])
        with torch.no_grad():
            logits = model(ids).logits[0, len(request.prompt_ids) - 1 : -1] / SAMPLING.temperature
        known = logits.log_softmax(-1)[range(len(response.token_ids)), response.token_ids]
        gaps.append((known - torch.tensor(response.logprobs)).abs().max().item())
    return max(gaps)


def _apart(function: Any, *arguments: Any) -> Any:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def _sampled_here(paths: list[str]) -> list[list[Response]]:
    from graphcredit.collector.policies.engines.vllm import VllmEngine

    engine, found = VllmEngine(), []
    for path in paths:
        engine.load(path)
        found.append(engine.generate(REQUESTS, SAMPLING))
    return found


def _sampled_by_adapter(base: str, adapter: str) -> list[Response]:
    # First, since it configures vLLM.
    from graphcredit.collector.policies.engines.vllm import vllm  # isort: split

    from vllm.lora.request import LoRARequest  # pyright: ignore

    llm = vllm.LLM(
        model=base,
        dtype="float32",
        enforce_eager=True,
        enable_lora=True,
        logprobs_mode="processed_logprobs",
        distributed_executor_backend="uni",
    )
    outputs = llm.generate(
        [{"prompt_token_ids": list(request.prompt_ids)} for request in REQUESTS],
        [
            vllm.SamplingParams(
                temperature=SAMPLING.temperature, max_tokens=12, seed=r.seed, logprobs=0
            )
            for r in REQUESTS
        ],
        lora_request=LoRARequest("adapter", 1, adapter),
    )
    answers = [output.outputs[0] for output in outputs]
    return [
        Response(
            token_ids=list(answer.token_ids),
            logprobs=[
                options[token].logprob
                for token, options in zip(answer.token_ids, answer.logprobs, strict=True)
            ],
        )
        for answer in answers
    ]


def test_the_process_loads_weights_and_merged_adapters_of_the_trainer(policies: dict[str, str]):
    paths = list(policies.values())
    found = _apart(_sampled_here, paths)
    assert len({tuple(answers[0].token_ids) for answers in found}) == 3
    for path, answers in zip(paths, found, strict=True):
        assert _largest_gap(path, answers) < 1e-4


def test_the_adapter_on_the_first_weights_is_the_merged_model(policies: dict[str, str]):
    answers = _apart(_sampled_by_adapter, policies["start"], f"{policies['lora']}/adapter")
    assert _largest_gap(policies["lora"], answers) < 1e-4
    assert _largest_gap(policies["start"], answers) > 1e-2


def test_the_server_loads_weights_and_merged_adapters_of_the_trainer(
    policies: dict[str, str], url: str
):
    engine = VllmServerEngine(url)
    for name in ("start", "full", "lora", "full"):
        engine.load(policies[name], "float32")
        assert _largest_gap(policies[name], engine.generate(REQUESTS, SAMPLING)) < 1e-4


@pytest.mark.parametrize("workers", [0, 2])
def test_the_trainer_recomputes_what_the_server_logged(
    tmp_path: Path, policies: dict[str, str], url: str, workers: int
):
    policy = f"vllm-server:{policies['full']}@{url}"
    play(tmp_path / "store", policy, temperature=0.7, workers=workers)
    found = agreement(tmp_path / "store", policies["full"])
    assert found.num_steps == 2 * 3 * 4
    assert found.largest < 1e-4


@pytest.mark.parametrize("lora_rank", [0, 4])
def test_a_loop_hands_each_policy_to_the_server_that_stays(tmp_path: Path, lora_rank: int):
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32}
    loop_worlds.save_talker(tmp_path / "start", **heads)
    with vllm_server(str(tmp_path / "start"), tmp_path / "vllm.log") as url:
        config = loop_worlds.corridor_loop(
            tmp_path,
            "out",
            collect={"engine": "vllm-server", "server": url, "concurrency": 64},
            train={"lora_rank": lora_rank, "lora_alpha": 8.0},
        )
        lines = loop_worlds.run(config)
    assert [line["iteration"] for line in lines] == [0, 1, 2]
    assert all(line["num_updates"] for line in lines[:2])
    log = (tmp_path / "vllm.log").read_text(encoding="utf-8")
    assert log.count('POST /collective_rpc HTTP/1.1" 200') == 3
