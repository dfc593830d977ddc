"""Models loaded in shards: the same to the bit, each process its rows, refused by all at once."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GenerationConfig

from graphcredit.trainer.engine.distributed import destroy_process_group
from graphcredit.trainer.engine.opening import open_engine
from graphcredit.trainer.model.loading import load_model
from tests.trainer import loading_worker, rank_worker
from tests.trainer.models import save_tiny_model
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
    "mixture": ("mixtral", {"num_local_experts": 4}, {}),
}
"""Name to architecture, its settings, and the options of a training."""


def _save(directory: Path, case: str) -> str:
    kind, settings, _ = CASES[case]
    return save_tiny_model(directory / case, kind, **settings)


@pytest.mark.parametrize("case", CASES)
def test_one_process_in_half_precision_has_the_weights_of_the_whole_model(
    tmp_path: Path, case: str
):
    name = _save(tmp_path, case)
    config = rank_worker.config(name, 0).changed(dtype="bfloat16", **CASES[case][2])
    engine = open_engine(name, config)
    loading_worker.assert_same(engine, load_model(name, config))


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


def _remove(directory: Path, name: str) -> None:
    path = directory / "model.safetensors"
    weights = load_file(path)
    del weights[name]
    save_file(weights, path, {"format": "pt"})


@pytest.mark.slow
def test_three_processes_have_the_whole_model_together_and_save_it_as_it_was(tmp_path: Path):
    """97 words on three processes are uneven."""
    for case in CASES:
        _save(tmp_path, case)
    cases = [(case, options) for case, (_, _, options) in CASES.items()]
    assert run_ranks(3, loading_worker.same, tmp_path, cases) == [0] * 3
    before, after = (
        load_file(tmp_path / directory / "model.safetensors")
        for directory in ("mixture", "mixture-saved")
    )
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


_UNLIKE = r"differ by up to .* nats: GraniteForCausalLM"


@pytest.mark.slow
def test_every_process_refuses_what_the_first_finds_wrong(tmp_path: Path):
    _save(tmp_path, "tied")
    _remove(tmp_path / "tied", "model.norm.weight")
    reason = "1 are missing .* model.norm.weight"
    assert run_ranks(2, loading_worker.refused, tmp_path, "tied", reason) == [0, 0]
    save_tiny_model(tmp_path / "granite", "granite", logits_scaling=3.0)
    assert run_ranks(2, loading_worker.refused, tmp_path, "granite", _UNLIKE) == [0, 0]
    config = json.loads((tmp_path / "granite" / "config.json").read_text())
    (tmp_path / "granite" / "config.json").write_text(json.dumps({**config, "hidden_act": "none"}))
    assert run_ranks(2, loading_worker.refused, tmp_path, "granite", "KeyError: 'none'") == [0, 0]
