"""The path of a GPU around the kernel of attention, with a stand-in for the kernel on the CPU."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters

from graphcredit.store.errors import InputError
from graphcredit.trainer.batching.packed_batch import PackedBatch, Sample, pack_samples
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine import opening
from graphcredit.trainer.engine.distributed import destroy_process_group
from graphcredit.trainer.engine.engine import TrainingEngine
from graphcredit.trainer.engine.opening import open_engine
from graphcredit.trainer.model import packed_attention
from tests.trainer import kernel_on_cpu
from tests.trainer.models import save_tiny_model


@pytest.fixture(autouse=True)
def _world() -> Iterator[None]:
    yield
    destroy_process_group()


def _by_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel_on_cpu.install()
    monkeypatch.setattr(
        packed_attention, "_is_for_kernel", lambda query, _: query.dtype == torch.bfloat16
    )


def _batch(seed: int, *, shares_prefixes: bool = False) -> PackedBatch:
    """Return a prompt with several continuations, and one apart."""
    random = np.random.default_rng(seed)

    def ids(length: int) -> np.ndarray[Any, np.dtype[np.int32]]:
        return random.integers(90, size=length, dtype=np.int32)

    prompt = ids(11 + seed)
    prompts = [prompt, np.append(prompt, ids(5)), prompt, ids(7)]
    samples = [Sample(each, ids(6), np.zeros(6, np.float32), 1.0) for each in prompts]
    ones = np.ones(len(samples))
    return pack_samples(
        samples,
        advantage=ones,
        weight=ones,
        steps=np.arange(len(samples)),
        shares_prefixes=shares_prefixes,
    )


def _open(model: str, **options: Any) -> TrainingEngine:
    config = TrainConfig(store=Path(), out=Path(), model=model, device="cpu", dtype="bfloat16")
    return open_engine(model, config.changed(**options))


def _pass(engine: TrainingEngine, batch: PackedBatch) -> tuple[Tensor, float]:
    """Return log-probabilities, and the norm of the gradient; take a step."""
    logprob = engine.score(batch).logprob
    engine.backward(-logprob.sum())
    return logprob.detach(), engine.update(1e-3)


@pytest.mark.parametrize(("kind", "shares_prefixes"), [("qwen2", False), ("mistral", True)])
def test_a_step_by_the_kernel_is_a_step_by_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, shares_prefixes: bool
):
    """Grouped heads; Mistral has a window of 8 tokens."""
    window = {"sliding_window": 8} if kind == "mistral" else {}
    model = save_tiny_model(tmp_path / "model", kind, **window)
    batch = _batch(0, shares_prefixes=shares_prefixes)
    expected, norm = _pass(_open(model, share_prefixes=shares_prefixes), batch)
    _by_kernel(monkeypatch)
    found, norm_by_kernel = _pass(_open(model, share_prefixes=shares_prefixes), batch)
    torch.testing.assert_close(found, expected, atol=0.15, rtol=0.02)
    assert norm_by_kernel == pytest.approx(norm, rel=0.02)
    assert not torch.equal(found, expected)


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
def test_compiled_layers_are_one_graph_for_all_layers_and_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """And another one without gradients. What is compiled computes the same."""
    _by_kernel(monkeypatch)
    compile_module = nn.Module.compile

    def traced(module: nn.Module, **options: Any) -> None:
        compile_module(module, **options, backend="eager")

    monkeypatch.setattr(nn.Module, "compile", traced)
    model = save_tiny_model(tmp_path / "model", num_hidden_layers=2)
    batches = [_batch(seed) for seed in range(3)]
    found: list[list[tuple[Tensor, float]]] = []
    for is_compiled in (False, True):
        torch._dynamo.reset()
        counters.clear()
        engine = _open(model, compile=is_compiled, gradient_checkpointing=True)
        found.append([_pass(engine, batch) for batch in batches])
        with engine.frozen():
            found[-1].append((engine.score(batches[0]).logprob, 0.0))
    assert counters["stats"]["unique_graphs"] == 2
    assert not counters["graph_break"]
    for (ours, our_norm), (theirs, their_norm) in zip(*found, strict=True):
        assert torch.equal(ours, theirs)
        assert our_norm == their_norm


@pytest.mark.parametrize(("width", "is_taken"), [(64, True), (60, False), (264, False)])
def test_the_kernel_gets_heads_of_widths_that_it_takes(width: int, is_taken: bool):
    head = SimpleNamespace(is_cuda=True, dtype=torch.bfloat16, shape=(1, 2, 3, width))
    assert packed_attention._is_for_kernel(head, head) is is_taken


@pytest.mark.parametrize("capability", [(7, 5), (9, 0)])
def test_a_gpu_without_bfloat16_is_refused(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int]
):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "T4")
    refused = pytest.raises(InputError, match=r"8\.0.*T4 has 7\.5.*--dtype float32")
    with refused if capability < (8, 0) else nullcontext():
        opening._check_capability(torch.device("cuda"))
