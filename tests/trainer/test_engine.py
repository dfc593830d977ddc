"""Engines: gradients, clipping, adapters, bfloat16."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from graphcredit.store.errors import InputError, TrainingError
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine.distributed import destroy_process_group
from graphcredit.trainer.engine.engine import TrainingEngine
from graphcredit.trainer.engine.opening import open_engine
from tests.trainer import rank_worker
from tests.trainer.models import save_tiny_model
from tests.trainer.packs import pack_samples, random_samples

SAMPLES = random_samples(4, seed=3)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(autouse=True)
def _world() -> Iterator[None]:
    yield
    destroy_process_group()


def _open(model: str, *, frozen: bool = False, **options: Any) -> TrainingEngine:
    settings = {"store": Path(), "out": Path(), "device": "cpu", **options}
    return open_engine(model, TrainConfig(model=model, **settings), frozen=frozen)


def _logprob(engine: TrainingEngine) -> Tensor:
    return engine.score(pack_samples(SAMPLES)).logprob


def _step(engine: TrainingEngine, learning_rate: float = 1e-2) -> float:
    engine.backward(-_logprob(engine).mean())
    return engine.update(learning_rate)


@pytest.mark.parametrize("wrong", [97, -1])
def test_a_token_the_model_does_not_know_is_refused(model: str, wrong: int):
    with pytest.raises(InputError, match=f"0 to 96: found {wrong}"):
        _open(model).score(pack_samples([([1, wrong], [2])]))


@pytest.mark.parametrize(
    ("rope", "settings"),
    [
        (
            {
                "rope_type": "longrope",
                "short_factor": [1.0] * 8,
                "long_factor": [4.0] * 8,
                "original_max_position_embeddings": 48,
            },
            {},
        ),
        ({"rope_type": "dynamic", "factor": 4.0}, {"max_position_embeddings": 48}),
    ],
)
def test_a_sample_so_long_that_it_turns_those_beside_it_is_refused(
    tmp_path: Path, rope: dict[str, Any], settings: dict[str, Any]
):
    parameters = {"rope_theta": 10000.0, **rope}
    path = save_tiny_model(tmp_path, "llama", rope_parameters=parameters, **settings)
    engine = _open(path)
    short, longest, too_long = (([3] * n, [5, 6]) for n in (10, 46, 47))
    alone = engine.score(pack_samples([short])).logprob
    beside = engine.score(pack_samples([short, longest])).logprob[: len(alone)]
    assert torch.allclose(alone, beside, atol=1e-5)
    with pytest.raises(InputError, match=r"at most 48 tokens .* found 49 .* --max-tokens 48"):
        engine.score(pack_samples([short, too_long]))


def test_the_norm_is_that_before_clipping_and_the_step_is_adamw(model: str):
    engine = _open(model)
    plain = AutoModelForCausalLM.from_pretrained(model)
    optimizer = torch.optim.AdamW(plain.parameters(), lr=1e-2, weight_decay=0.0)
    for _ in range(2):
        optimizer.zero_grad()
        logprobs = [
            plain(torch.tensor([[*prompt, *response]]))
            .logits[0, len(prompt) - 1 : -1]
            .log_softmax(-1)[range(len(response)), response]
            for prompt, response in SAMPLES
        ]
        (-torch.cat(logprobs).mean()).backward()
        gradient = torch.cat([p.grad.flatten() for p in plain.parameters()])
        assert gradient.norm() > 1
        for p in plain.parameters():
            p.grad *= 1 / gradient.norm()
        optimizer.step()
        assert _step(engine) == pytest.approx(gradient.norm().item(), rel=1e-4)
    trained = engine.state().weights
    for name, p in plain.named_parameters():
        assert (trained[name] - p).norm() < 1e-3 * p.norm()


def test_a_gradient_that_is_not_finite_stops_and_changes_nothing(model: str):
    engine = _open(model)
    before = engine.state().weights["lm_head.weight"].clone()
    engine.backward(_logprob(engine).sum() * float("inf"))
    with pytest.raises(TrainingError, match="norm must be finite"):
        engine.update(1e-2)
    assert torch.equal(engine.state().weights["lm_head.weight"], before)


@pytest.mark.parametrize("lora_rank", [0, 4])
def test_recomputing_activations_changes_no_bit(model: str, lora_rank: int):
    engines = [
        _open(model, gradient_checkpointing=flag, lora_rank=lora_rank) for flag in (False, True)
    ]
    norms = [[_step(engine) for _ in range(2)] for engine in engines]
    assert norms[0] == norms[1]


def test_frozen_scores_have_no_gradient(model: str):
    engine = _open(model)
    with engine.frozen():
        frozen = _logprob(engine)
    assert not frozen.requires_grad
    assert torch.equal(frozen, _logprob(engine))
    assert not _logprob(_open(model, frozen=True)).requires_grad


def test_an_adapter_begins_as_the_model_below_it_and_is_all_that_is_trained(model: str):
    engine = _open(model, lora_rank=4)
    assert engine.has_adapter
    base = _logprob(_open(model, frozen=True, lora_rank=4))
    assert torch.equal(_logprob(engine), base)
    _step(engine)
    assert (_logprob(engine) - base).abs().max() > 1e-2
    _step(engine)
    assert all("lora_" in name for name in engine.state().weights)


def test_bfloat16_computes_in_half_and_keeps_small_updates(model: str):
    whole, half = _open(model), _open(model, dtype="bfloat16")
    gap = (_logprob(whole) - _logprob(half)).abs()
    assert 1e-4 < gap.max() < 0.5
    before = rank_worker.whole(half.state().weights)
    _step(half, learning_rate=1e-6)
    state = half.state()
    after = rank_worker.whole(state.weights)
    moved = [(after[n] - before[n]).abs().max().item() for n in before]
    assert {v.dtype for v in (*after.values(), *state.optimizer.values())} == {torch.float32}
    assert max(moved) == pytest.approx(1e-6, rel=0.1)


def test_sharded_layers_recompute_and_adapters_train_after_a_reference_pass(model: str):
    """The first forward pass must not fix for good that adapters have no gradient."""
    norms: list[float] = []
    for recomputes in (False, True):
        engine = _open(
            model, dtype="bfloat16", lora_rank=4, gradient_checkpointing=recomputes, seed=1
        )
        with engine.frozen():
            base = _logprob(engine)
        assert torch.equal(_logprob(engine), base)
        norms += [_step(engine), _step(engine)]
        assert not torch.equal(_logprob(engine), base)
    assert norms[:2] == norms[2:]
    assert min(norms) > 0


def test_the_first_ratio_is_one_to_the_bit(model: str):
    engine = _open(model)
    with engine.frozen():
        old = _logprob(engine)
    assert torch.equal(torch.exp(_logprob(engine) - old), torch.ones_like(old))


def test_processes_wait_for_each_other_for_half_an_hour(
    model: str, monkeypatch: pytest.MonkeyPatch
):
    asked: list[float] = []

    def init(backend: str, *, timeout: timedelta) -> None:
        asked.append(timeout.total_seconds())
        raise InputError("enough")

    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr("torch.distributed.init_process_group", init)
    with pytest.raises(InputError, match="enough"):
        _open(model)
    assert asked == [1800.0]


def test_processes_of_several_machines_are_refused(model: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WORLD_SIZE", "16")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "8")
    with pytest.raises(InputError, match=r"runs on one machine.* 16 processes on several"):
        _open(model)
