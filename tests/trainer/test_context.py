"""Context parallelism: a micro-batch in slices has the numbers of samples one by one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from graphcredit.store.errors import InputError, OptionError
from graphcredit.trainer.batching.packed_batch import PackedBatch, Sample, pack_samples
from graphcredit.trainer.batching.plan import MicroBatchSize
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.model.context import TokenSlice, places_of
from graphcredit.trainer.model.loading import load_shapes
from graphcredit.trainer.model.logprobs import Scorer, scorer_arguments
from graphcredit.trainer.model.meta_pass import pass_bytes
from graphcredit.trainer.model.packed_attention import PACKED_ATTENTION, register_attention
from graphcredit.trainer.preview import preview
from graphcredit.trainer.training import train
from tests.trainer.context_threads import ThreadContext, run_together
from tests.trainer.logs import random_episodes, token_store
from tests.trainer.models import save_tiny_model, tiny_model
from tests.trainer.vision import save_tiny_seer

FAMILIES: dict[str, dict[str, Any]] = {
    "qwen2": {},
    "mistral": {"sliding_window": 5, "num_key_value_heads": 1},
    "gemma2": {"attn_logit_softcapping": None, "final_logit_softcapping": 2.0, "sliding_window": 4},
    "qwen3": {"num_attention_heads": 12, "num_key_value_heads": 6, "tie_word_embeddings": True},
    "gpt2": {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64},
    "mixtral": {"num_local_experts": 4},
}
"""Of the key heads, two processes halve two, copy one, and share six; four copy two and six."""


def _samples() -> list[Sample]:
    """Return samples that begin alike, two equal ones, and one that is half of all tokens."""
    random = np.random.default_rng(0)
    start = random.integers(90, size=7)
    shapes = ((start, 3, 4), (start, 3, 1), (start[:2], 4, 9), (start[:0], 1, 1), (start, 9, 23))
    samples: list[Sample] = []
    for beginning, num_asked, num_answered in shapes:
        prompt = np.concatenate([beginning, random.integers(90, size=num_asked)]).astype(np.int32)
        response = random.integers(90, size=num_answered).astype(np.int32)
        samples.append(Sample(prompt, response, -np.ones(num_answered, np.float32), 0.7))
    return [*samples, samples[1]]


def _pack(samples: list[Sample], *, shares_prefixes: bool) -> PackedBatch:
    count = len(samples)
    return pack_samples(
        samples,
        advantage=np.arange(count, dtype=np.float64) - 1.5,
        weight=np.ones(count) / count,
        steps=np.arange(count),
        shares_prefixes=shares_prefixes,
    )


def _one_by_one(model: Any, samples: list[Sample]) -> tuple[Tensor, Tensor]:
    """Return log-probabilities and entropies from whole logits, one sample at a time."""
    model.set_attn_implementation("eager")
    found: list[tuple[Tensor, Tensor]] = []
    for sample in samples:
        ids = torch.from_numpy(sample.tokens).long()
        logits = model(ids[None], use_cache=False).logits[0, len(sample.prompt) - 1 : -1]
        predicted = (logits / sample.temperature).log_softmax(-1)
        answered = predicted[range(len(predicted)), ids[len(sample.prompt) :]]
        found.append((answered, -(predicted.exp() * predicted).sum(-1)))
    logprob, entropy = (torch.cat(each) for each in zip(*found, strict=True))
    return logprob, entropy


def _go_backward(batch: PackedBatch, logprob: Tensor, entropy: Tensor) -> None:
    """Go backward from a loss that is no sum over tokens."""
    weight = torch.tensor(batch.weight * batch.advantage)
    ((weight * logprob).sum().exp() + (logprob.mean() * entropy).sum()).backward()


def _gradients(model: Any) -> dict[str, Tensor]:
    return {
        name: torch.zeros_like(p) if p.grad is None else p.grad
        for name, p in model.named_parameters()
    }


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("shares_prefixes", [False, True])
@pytest.mark.parametrize("kind", FAMILIES)
def test_slices_have_the_numbers_and_gradients_of_samples_one_by_one(
    kind: str, shares_prefixes: bool, size: int
):
    samples = _samples()
    batch = _pack(samples, shares_prefixes=shares_prefixes)
    register_attention()

    def work(context: ThreadContext) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        model = models[context.rank]
        model.set_attn_implementation(PACKED_ATTENTION)
        scorer = Scorer(model, head_chunk=5)
        arguments = scorer_arguments(batch, torch.tensor, want_entropy=True, context=context)
        logprob, entropy, _ = scorer(*arguments)
        _go_backward(batch, logprob, entropy)
        return logprob.detach(), entropy.detach(), _gradients(model)

    models = [tiny_model(kind, **FAMILIES[kind]) for _ in range(size)]
    found = run_together(size, work)
    plain = tiny_model(kind, **FAMILIES[kind])
    expected = _one_by_one(plain, samples)
    _go_backward(batch, *expected)
    for logprob, entropy, _ in found:
        torch.testing.assert_close((logprob, entropy), expected, atol=1e-5, rtol=0)
    # What is rounded in one weight's gradient has the size of what passes through all of them.
    theirs = _gradients(plain)
    whole = torch.stack([each.norm() for each in theirs.values()]).norm()
    for name, gradient in theirs.items():
        ours = torch.stack([gradients[name] for *_, gradients in found]).sum(0)
        assert (ours - gradient).norm() <= 1e-5 * (1e-2 + whole), name


def test_the_routers_of_all_tokens_are_seen_by_each_process():
    batch = _pack(_samples(), shares_prefixes=False)
    register_attention()

    def work(context: ThreadContext | None) -> tuple[Tensor, ...]:
        model = models.pop()
        model.set_attn_implementation(PACKED_ATTENTION)
        arguments = scorer_arguments(
            batch, torch.tensor, want_entropy=False, want_routing=True, context=context
        )
        return Scorer(model, head_chunk=5)(*arguments)[2]

    models = [tiny_model("mixtral", num_local_experts=4) for _ in range(4)]
    expected = work(None)
    for found in run_together(2, work):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_slices_and_places_by_hand(rank: int):
    """Seven tokens on three processes: 0 1 2, 3 4 5, and 6 with two zeros."""
    context = ThreadContext(rank, 3, [], None)  # type: ignore[arg-type]
    tokens = TokenSlice(context=context, num_tokens=7)
    slices = ([10, 11, 12], [13, 14, 15], [16, 0, 0])
    assert tokens.own(np.arange(10, 17)).tolist() == slices[rank]
    own, place, most = places_of(np.array([5, 0, 4, 1, 3, 6]), tokens)
    assert own.tolist() == [[1, 3], [0, 2, 4], [5]][rank]
    assert most == 3
    assert place.tolist() == [3, 0, 4, 1, 5, 6]


def _config(tmp_path: Path, model: str, **options: Any) -> TrainConfig:
    chosen: Mapping[str, Any] = {"device": "cpu", "max_tokens": 64, "batch_size": 8, **options}
    return TrainConfig(store=tmp_path / "s", out=tmp_path / "out", model=model, **chosen)


def test_what_cannot_be_shared_is_refused_by_name_before_it_is_loaded(tmp_path: Path):
    """Four heads on three processes, a model that sees, one process, and compiled layers."""
    token_store(tmp_path / "s")
    name = save_tiny_model(tmp_path / "m")
    for path in (tmp_path / "m").glob("*.safetensors"):
        path.unlink()
    config = _config(tmp_path, name, context_parallel=3)
    heads = r"attention heads, .* got 3, and .* has 4 heads. Take one of 1, 2, 4"
    for refused in (lambda: preview(config, num_processes=3), lambda: train(config)):
        with pytest.raises(InputError, match=heads):
            refused()
    other = config.changed(model=save_tiny_model(tmp_path / "n", num_attention_heads=6))
    with pytest.raises(InputError, match=r"got 3, and .*m has 4 heads"):
        preview(other.changed(reference=name), num_processes=3)
    with pytest.raises(InputError, match=r"number of processes.* got 2 processes .* 3 in all"):
        preview(config.changed(context_parallel=2), num_processes=3)
    seeing = save_tiny_seer(tmp_path / "v")
    with pytest.raises(InputError, match=r"vision tower.* is a qwen2"):
        preview(config.changed(model=seeing), num_processes=3)
    with pytest.raises(OptionError, match="compile must be off"):
        config.changed(compile=True)


def test_one_process_alone_is_refused(tmp_path: Path):
    token_store(tmp_path / "s")
    config = _config(tmp_path, save_tiny_model(tmp_path / "m"), context_parallel=2)
    with pytest.raises(InputError, match=r"got 2 processes for a micro-batch, and 1 in all"):
        train(config)


def test_the_plan_is_that_of_as_many_groups_as_there_would_be_processes(tmp_path: Path):
    token_store(tmp_path / "s", random_episodes(0, 12))
    config = _config(tmp_path, save_tiny_model(tmp_path / "m"))
    alone = preview(config, num_processes=3)
    shared = preview(config.changed(context_parallel=2), num_processes=6)
    differing = {key for key, value in alone["plan"].items() if shared["plan"][key] != value}
    assert differing == {"num_processes", "context_parallel"}
    assert shared["memory"]["activations"] < alone["memory"]["activations"]
    assert shared["memory"]["parameters"] == -(-alone["memory"]["parameters"] // 8) * 4


def test_a_process_keeps_the_activations_of_its_share_of_the_tokens(tmp_path: Path):
    """Beside them, one layer's keys are there twice while they are exchanged."""
    name = save_tiny_model(tmp_path / "m", num_hidden_layers=6)
    config = TrainConfig(store=Path(), out=Path(), model=name, device="cpu")
    size = MicroBatchSize(4096, 1, 4096)
    one, two, four = (
        pass_bytes(load_shapes(name, config), size, context_size=n) for n in (1, 2, 4)
    )
    assert 1 / 2 < two / one < 1 / 2 + 1 / 10
    assert 1 / 4 < four / one < 1 / 4 + 1 / 10


def test_it_is_not_in_the_fingerprint():
    config = TrainConfig(store=Path("s"), out=Path("o"), model="m")
    assert config.changed(context_parallel=4).decisive_text() == config.decisive_text()
