"""Models loaded in shards: the same to the bit, each process its rows, refused by all at once."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GenerationConfig

from graphcredit.store.errors import InputError
from graphcredit.trainer.engine.distributed import destroy_process_group
from graphcredit.trainer.engine.opening import open_engine
from graphcredit.trainer.model.loading import load_model
from tests.trainer import loading_worker, rank_worker
from tests.trainer.models import save_tiny_model, tiny_model
from tests.trainer.ranks import run_ranks


@pytest.fixture(autouse=True)
def _world() -> Iterator[None]:
    yield
    destroy_process_group()


ROPE = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "tied": ("qwen2", {"tie_word_embeddings": True}, {}),
    "adapted": ("qwen2", {"tie_word_embeddings": True}, {"lora_rank": 4, "iteration": 2}),
    "scaled": ("gemma3_text", {"sliding_window": 4}, {"share_prefixes": True}),
    "turned": ("llama", {"rope_parameters": ROPE}, {}),
}
"""Name to architecture, its settings, and the options of a training."""

SOME = {"num_experts": 12, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
ATTENTION = {"lora_rank": 4, "lora_targets": "q_proj,v_proj"}
MIXTURES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "mixtral": ("mixtral", {"num_local_experts": 4}, {}),
    "shared": ("qwen2_moe", {**SOME, "shared_expert_intermediate_size": 48}, {}),
    "twelve": ("qwen3_moe", {**SOME, "tie_word_embeddings": True}, {}),
    "attentive": ("qwen3_moe", SOME, ATTENTION),
    "renamed": ("granitemoe", {"num_local_experts": 4}, {}),
}
"""The same of mixtures of experts: twelve are in another order by name than by number."""


def _save(directory: Path, case: str) -> str:
    kind, settings, _ = (CASES | MIXTURES)[case]
    return save_tiny_model(directory / case, kind, **settings)


def _split(directory: Path) -> None:
    """Write a model again as several bfloat16 files, beside one that transformers leaves alone."""
    model = tiny_model("qwen2").bfloat16()
    model.save_pretrained(directory, max_shard_size="100KB")
    assert len(list(directory.glob("model-*.safetensors"))) > 1
    other = {"model.norm.weight": torch.ones(64)}
    save_file(other, directory / "consolidated.safetensors", {"format": "pt"})


@pytest.mark.parametrize("case", CASES | MIXTURES)
def test_one_process_in_half_precision_has_the_weights_of_the_whole_model(
    tmp_path: Path, case: str
):
    name = _save(tmp_path, case)
    config = rank_worker.config(name, 0).changed(dtype="bfloat16", **(CASES | MIXTURES)[case][2])
    engine = open_engine(name, config)
    assert engine.notices == []
    loading_worker.assert_same(engine, load_model(name, config, adapter_seed=config.adapter_seed))


@pytest.mark.parametrize("lora_rank", [0, 4])
def test_what_is_saved_beside_the_weights_is_the_same(tmp_path: Path, lora_rank: int):
    """Among it what samplers stop at, which only generation_config.json says."""
    name = _save(tmp_path, "tied")
    GenerationConfig(eos_token_id=[2, 5], temperature=0.6, do_sample=True).save_pretrained(name)
    config = rank_worker.config(name, lora_rank)
    for out, dtype in (("whole", "float32"), ("shards", "bfloat16")):
        open_engine(name, config.changed(dtype=dtype)).save_pretrained(tmp_path / out)
    whole, shards = (
        {
            str(path.relative_to(tmp_path / out)): path.read_bytes()
            for path in (tmp_path / out).rglob("*")
            if path.is_file()
        }
        for out in ("whole", "shards")
    )
    assert whole == shards
    assert json.loads(whole["generation_config.json"])["eos_token_id"] == [2, 5]


def test_a_frozen_model_has_nothing_to_train(tmp_path: Path):
    name = _save(tmp_path, "tied")
    config = rank_worker.config(name, 4).changed(dtype="bfloat16")
    engine = open_engine(name, config, frozen=True)
    assert not any(p.requires_grad for p in engine._scorer.parameters())
    assert not engine.has_adapter


def test_a_weight_that_is_missing_is_named_as_when_the_model_is_loaded_whole(tmp_path: Path):
    name = _save(tmp_path, "tied")
    _remove(tmp_path / "tied", "model.layers.1.mlp.up_proj.weight")
    with pytest.raises(InputError, match=r"1 are missing .* model.layers.1.mlp.up_proj.weight"):
        open_engine(name, rank_worker.config(name, 0).changed(dtype="bfloat16"))
    (tmp_path / "tied" / "model.safetensors").write_bytes(b"12345678")
    with pytest.raises(InputError, match="must hold a causal LM"):
        open_engine(name, rank_worker.config(name, 0).changed(dtype="bfloat16"))


def _remove(directory: Path, name: str) -> None:
    path = directory / "model.safetensors"
    weights = load_file(path)
    del weights[name]
    save_file(weights, path, {"format": "pt"})


@pytest.mark.slow
@pytest.mark.parametrize("world_size", [2, 3])
def test_each_process_reads_its_rows_and_together_they_have_the_whole_model(
    tmp_path: Path, world_size: int
):
    """97 words on three processes are uneven."""
    cases = [(case, CASES[case][2]) for case in CASES]
    for case in CASES:
        _save(tmp_path, case)
    save_tiny_model(tmp_path / "split", "qwen2")
    (tmp_path / "split" / "model.safetensors").unlink()
    _split(tmp_path / "split")
    cases.append(("split", {}))
    assert run_ranks(world_size, loading_worker.same, tmp_path, cases) == [0] * world_size


@pytest.mark.slow
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_each_process_reads_its_experts_and_a_mixture_is_saved_as_it_was(
    tmp_path: Path, world_size: int
):
    """Four experts on three processes leave the last one without any."""
    for case in MIXTURES:
        _save(tmp_path, case)
    cases = [(case, options) for case, (_, _, options) in MIXTURES.items()]
    assert run_ranks(world_size, loading_worker.same, tmp_path, cases) == [0] * world_size
    for case in MIXTURES:
        before, after = (
            load_file(tmp_path / d / "model.safetensors") for d in (case, f"{case}-saved")
        )
        assert before.keys() == after.keys()
        assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_mixture_without_one_of_its_experts_is_refused(tmp_path: Path):
    name = _save(tmp_path, "mixtral")
    _remove(tmp_path / "mixtral", "model.layers.1.block_sparse_moe.experts.2.w2.weight")
    with pytest.raises(InputError, match=r"must hold a causal LM .*mismatched_sizes"):
        open_engine(name, rank_worker.config(name, 0).changed(dtype="bfloat16"))


def test_a_model_that_is_converted_in_another_way_is_loaded_whole(tmp_path: Path):
    """Of square gates the shape does not tell that they are transposed."""
    name = save_tiny_model(tmp_path / "square", "qwen2", intermediate_size=64)
    config = rank_worker.config(name, 0).changed(dtype="bfloat16")
    with loading_worker.transposed_gates():
        engine = open_engine(name, config)
        loading_worker.assert_same(engine, load_model(name, config, adapter_seed=""))
    gate = engine._scorer.causal_lm.model.layers[1].mlp.gate_proj.weight.full_tensor()
    stored = load_file(tmp_path / "square" / "model.safetensors")
    assert torch.equal(gate, stored["model.layers.1.mlp.gate_proj.weight"].T)
    assert [f"{name} is loaded whole" in each for each in engine.notices] == [True]


@pytest.mark.slow
def test_the_first_process_hands_out_what_is_converted_in_another_way(tmp_path: Path):
    save_tiny_model(tmp_path / "square", "qwen2", intermediate_size=64)
    assert run_ranks(3, loading_worker.converted, tmp_path, "square") == [0] * 3


@pytest.mark.slow
def test_every_process_refuses_what_the_first_finds_wrong(tmp_path: Path):
    _save(tmp_path, "tied")
    _remove(tmp_path / "tied", "model.norm.weight")
    reason = "1 are missing .* model.norm.weight"
    assert run_ranks(2, loading_worker.refused, tmp_path, "tied", reason) == [0, 0]
    save_tiny_model(tmp_path / "granite", "granite", logits_scaling=3.0)
    assert run_ranks(2, loading_worker.unlike, tmp_path, "granite") == [0, 0]
    config = json.loads((tmp_path / "granite" / "config.json").read_text())
    (tmp_path / "granite" / "config.json").write_text(json.dumps({**config, "hidden_act": "none"}))
    assert run_ranks(2, loading_worker.refused, tmp_path, "granite", "KeyError: 'none'") == [0, 0]
