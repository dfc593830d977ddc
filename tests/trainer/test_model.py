"""Which models are taken, which are refused and why, and that what is saved loads again."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from graphcredit.store.errors import InputError
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine.opening import open_engine
from graphcredit.trainer.model.adapters import quiet_peft
from graphcredit.trainer.model.flops import peak_flops, training_flops
from graphcredit.trainer.model.layers import decoder_layers, model_shape
from graphcredit.trainer.model.loading import check_model, load_model, load_shapes
from graphcredit.trainer.model.source import tokenizer_notices
from tests.trainer.models import NUM_TOKENS, save_tiny_model, tiny_tokenizer
from tests.trainer.packs import pack_samples, random_samples

LORA = {"lora_rank": 4, "lora_alpha": 8.0, "learning_rate": 0.01}


def config(model: str, **options: Any) -> TrainConfig:
    settings = {"store": Path(), "out": Path(), "device": "cpu", **options}
    return TrainConfig(model=model, **settings)


def _load(name: str, **options: Any) -> Any:
    return load_model(name, config(name, **options))


def _check(name: str) -> None:
    check_model(name, config(name))


def _edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("qwen2", {}),
        ("qwen2", {"tie_word_embeddings": True}),
        ("mistral", {"sliding_window": 5}),
        ("gemma3_text", {"sliding_window": 4}),
        ("mixtral", {"num_local_experts": 4}),
    ],
)
def test_a_causal_lm_is_taken_in_float32_without_dropout(
    tmp_path: Path, kind: str, settings: dict[str, Any]
):
    scorer = _load(save_tiny_model(tmp_path, kind, attention_dropout=0.1, **settings))
    assert {p.dtype for p in scorer.parameters()} == {torch.float32}
    assert not any(module.training for module in scorer.causal_lm.modules())
    assert len(decoder_layers(scorer)) == 2


@pytest.mark.parametrize(
    ("kind", "settings", "reason"),
    [
        ("gemma2", {"attn_logit_softcapping": 50.0}, "soft-capped scores"),
        ("gpt_oss", {"num_local_experts": 4}, "attention sinks"),
        ("llama4_text", {"num_local_experts": 2}, "chunked_attention layers"),
        ("mamba", {}, "linear_attention layers"),
        ("bloom", {}, "computes attention in its own code"),
        ("nemotron", {}, "does not hand keyword arguments on"),
        ("granite", {"logits_scaling": 3.0}, r"differ by up to .* nats: GraniteForCausalLM"),
        ("phi", {}, "must be linear and have no bias"),
    ],
)
def test_samples_that_cannot_be_kept_apart_and_logits_made_in_another_way_are_refused(
    tmp_path: Path, kind: str, settings: dict[str, Any], reason: str
):
    with pytest.raises(InputError, match=reason):
        _load(save_tiny_model(tmp_path, kind, **settings))


def test_a_name_that_is_not_on_this_machine_is_not_fetched():
    with pytest.raises(InputError, match="`hf download nobody/nothing`"):
        _load("nobody/nothing")


def _without_safetensors(directory: Path) -> None:
    (directory / "model.safetensors").rename(directory / "pytorch_model.bin")


def _without_a_weight(directory: Path) -> None:
    weights = load_file(directory / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, directory / "model.safetensors", {"format": "pt"})


def _cut_short(directory: Path) -> None:
    path = directory / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-9])


def _with_code(directory: Path) -> None:
    _edit(directory / "config.json", model_type="own", auto_map={"AutoConfig": "own.Config"})
    (directory / "own.py").write_text("raise AssertionError('this must never run')")


def _quantised(directory: Path) -> None:
    _edit(directory / "config.json", quantization_config={"quant_method": "gptq", "bits": 4})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_without_safetensors, r"weights as \*.safetensors"),
        (_without_a_weight, r"1 are missing .* model.layers.1.mlp.up_proj.weight"),
        (_cut_short, "must hold a causal LM"),
        (_with_code, "without code of its own"),
        (_quantised, "is quantised"),
    ],
)
def test_a_model_that_is_not_whole_or_not_plain_is_refused(
    tmp_path: Path, change: Callable[[Path], None], reason: str
):
    name = save_tiny_model(tmp_path)
    change(tmp_path)
    with pytest.raises(InputError, match=reason):
        _load(name)


def test_a_tokenizer_that_transformers_would_add_to_stands_beside_a_model_of_its_size(
    tmp_path: Path,
):
    """Beside a Qwen2, transformers opens any tokenizer as one of Qwen2's, with a token of its own.

    What is saved beside the policy is what was there, less what is no file.
    """
    name = save_tiny_model(tmp_path / "before")
    tiny_tokenizer(NUM_TOKENS).save_pretrained(tmp_path / "before")
    assert len(AutoTokenizer.from_pretrained(name)) > NUM_TOKENS
    (tmp_path / "before/spiece.model").write_bytes(b"\x00sentences")
    (tmp_path / "before/tokenizer-old").mkdir()
    check_model(name, config(name))
    engine = open_engine(name, config(name))
    assert tokenizer_notices(tmp_path / "before", engine.num_ids) == []
    engine.save_pretrained(tmp_path / "after")
    for file in ("tokenizer.json", "tokenizer_config.json", "spiece.model"):
        assert (tmp_path / "after" / file).read_bytes() == (tmp_path / "before" / file).read_bytes()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"quantization_config": [1]}, "AttributeError: 'list' object has no attribute"),
        ({"attn_implementation": "flash_attention_2"}, "ImportError: FlashAttention2"),
        ({"attn_implementation": "of/somebody"}, "ImportError: .*kernels"),
        ({"num_attention_heads": 0}, "ZeroDivisionError"),
        ({"hidden_act": "nothing"}, "KeyError: 'nothing'"),
    ],
)
@pytest.mark.parametrize("check", [_load, _check])
def test_whatever_is_wrong_in_a_configuration_is_one_line(
    tmp_path: Path, check: Callable[[str], Any], settings: dict[str, Any], reason: str
):
    name = save_tiny_model(tmp_path)
    _edit(tmp_path / "config.json", **settings)
    with pytest.raises(InputError, match=f"^{name} must hold [^\\n]*{reason}[^\\n]*$"):
        check(name)


def test_a_tokenizer_larger_than_the_embedding_is_noticed(tmp_path: Path):
    name = save_tiny_model(tmp_path, "llama")
    tiny_tokenizer(NUM_TOKENS + 3).save_pretrained(tmp_path)
    _load(name)
    (notice,) = tokenizer_notices(tmp_path, NUM_TOKENS)
    assert "has tokens up to 99, and the model embeds only 0 to 96" in notice
    (tmp_path / "tokenizer.json").write_text("{", encoding="utf-8")
    (notice,) = tokenizer_notices(tmp_path, NUM_TOKENS)
    assert "kept as it is, but cannot be read" in notice
    (tmp_path / "tokenizer.json").unlink()
    assert tokenizer_notices(tmp_path, NUM_TOKENS) == []


@pytest.mark.parametrize(
    ("targets", "reason"),
    [
        ("lm_head", "must not name the head"),
        ("q_proj,lm_head", "must not name the head"),
        ("nowhere", "lora_targets 'nowhere'"),
    ],
)
def test_lora_on_the_head_or_on_nothing_is_refused(tmp_path: Path, targets: str, reason: str):
    with pytest.raises(InputError, match=reason):
        _load(save_tiny_model(tmp_path), lora_targets=targets, **LORA)


def test_weights_that_are_not_trained_have_no_gradient_to_compute(tmp_path: Path):
    name = save_tiny_model(tmp_path)
    whole, adapted = (model_shape(_load(name, **options)) for options in ({}, LORA))
    assert (whole.num_frozen, whole.is_head_frozen) == (0, False)
    assert adapted.is_head_frozen
    assert adapted.num_frozen == whole.num_body < adapted.num_body
    batch = pack_samples(random_samples(3, seed=0))
    tokens, predicted = len(batch.input_ids), len(batch.predictor)
    adapters = adapted.num_body - whole.num_body
    saved = 2 * (whole.num_body * tokens + whole.num_head * predicted)
    gap = training_flops(whole, batch) - training_flops(adapted, batch)
    assert gap == saved - 6 * adapters * tokens


def test_adapters_of_each_iteration_begin_otherwise(tmp_path: Path):
    name = save_tiny_model(tmp_path)

    def adapters(**options: Any) -> torch.Tensor:
        weights = dict(_load(name, **LORA, **options).causal_lm.named_parameters())
        return torch.cat([w.flatten() for key, w in weights.items() if "lora_A" in key])

    assert adapters(iteration=3).equal(adapters(iteration=3))
    assert not adapters(iteration=3).equal(adapters(iteration=4))
    assert not adapters(iteration=3).equal(adapters(iteration=3, seed=1))


@pytest.mark.parametrize("settings", [{}, {"tie_word_embeddings": True}])
def test_a_saved_model_loads_bit_for_bit_with_its_tokenizer(
    tmp_path: Path, settings: dict[str, Any]
):
    name = save_tiny_model(tmp_path / "before", **settings)
    engine = open_engine(name, config(name))
    _step(engine)
    engine.save_pretrained(tmp_path / "after")
    engine.save_pretrained(tmp_path / "after")
    readable = {path.stat().st_mode for path in (tmp_path / "after").iterdir()}
    assert len(readable) == 1, "a server that is another user reads the weights too"
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "after")
    trained = engine.state().weights
    assert loaded.dtype == torch.float32
    assert {n for n, _ in loaded.named_parameters()} == trained.keys()
    assert all(torch.equal(p, trained[n]) for n, p in loaded.named_parameters())
    before = AutoModelForCausalLM.from_pretrained(name)
    assert not torch.equal(loaded.lm_head.weight, before.lm_head.weight)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(tmp_path / "after")
    assert tokenizer("w5 w7")["input_ids"] == [5, 7]
    assert "packed" not in (tmp_path / "after/config.json").read_text()
    assert [path.name for path in tmp_path.glob("*.tmp")] == []


@pytest.mark.parametrize("is_tied", [False, True])
def test_an_adapter_is_saved_alone_and_merged(tmp_path: Path, is_tied: bool):
    name = save_tiny_model(tmp_path / "before", tie_word_embeddings=is_tied)
    engine = open_engine(name, config(name, **LORA))
    _step(engine)
    engine.save_pretrained(tmp_path / "after")
    samples = random_samples(3, seed=1)
    with engine.frozen():
        adapted = engine.score(pack_samples(samples)).logprob
    merged = open_engine(str(tmp_path / "after"), config(name))
    with merged.frozen():
        alone = merged.score(pack_samples(samples)).logprob
    torch.testing.assert_close(alone, adapted, atol=1e-5, rtol=1e-5)
    weights = load_file(tmp_path / "after/model.safetensors")
    assert ("lm_head.weight" in weights) is not is_tied
    base = AutoModelForCausalLM.from_pretrained(name)
    with quiet_peft():
        PeftModel.from_pretrained(base, str(tmp_path / "after/adapter"))
    found = load_file(tmp_path / "after/adapter/adapter_model.safetensors")
    trained = engine.state().weights
    assert len(found) == len(trained) == 2 * 2 * 7
    assert all(torch.equal(found[n.replace(".default.", ".")], v) for n, v in trained.items())


def _step(engine: Any) -> None:
    """Train one update far enough to be seen in bfloat16."""
    loss = -engine.score(pack_samples(random_samples(3, seed=1))).logprob.mean()
    engine.backward(loss)
    engine.update(0.01)


@pytest.mark.filterwarnings("ignore:fan_in_fan_out")
@pytest.mark.parametrize(
    ("kind", "settings", "targets"),
    [
        ("qwen2", {}, "all-linear"),
        ("gpt2", {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64}, "all-linear"),
        ("llama", {}, "q_proj,down_proj"),
    ],
)
def test_an_adapter_is_merged_module_by_module_as_peft_merges_it_whole(
    tmp_path: Path, kind: str, settings: dict[str, Any], targets: str
):
    name = save_tiny_model(tmp_path / "before", kind, **settings)
    engine = open_engine(name, config(name, **LORA, lora_targets=targets))
    _step(engine)
    engine.save_pretrained(tmp_path / "after")
    base = AutoModelForCausalLM.from_pretrained(name)
    with quiet_peft():
        adapted = PeftModel.from_pretrained(base, str(tmp_path / "after/adapter"))
    expected = adapted.merge_and_unload().state_dict()
    found = AutoModelForCausalLM.from_pretrained(tmp_path / "after").state_dict()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[key], expected[key]) for key in found)
    before = AutoModelForCausalLM.from_pretrained(name).state_dict()
    assert any(not torch.equal(found[key], before[key]) for key in found)


def test_layers_of_a_large_model_compute_their_activations_again_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    name = save_tiny_model(tmp_path)
    size = sum(p.numel() for p in load_shapes(name, config(name)).parameters())
    for large, asked, expected in (
        (size, None, True),
        (size + 1, None, False),
        (size + 1, True, True),
        (size, False, False),
    ):
        monkeypatch.setattr("graphcredit.trainer.model.layers.LARGE", large)
        scorer = load_shapes(name, config(name, gradient_checkpointing=asked))
        assert {layer.training for layer in decoder_layers(scorer)} == {expected}


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA H100 80GB HBM3", 989e12),
        ("NVIDIA H100 PCIe", 756e12),
        ("NVIDIA H200", 989e12),
        ("NVIDIA H200 NVL", 835e12),
        ("NVIDIA A100-SXM4-80GB", 312e12),
        ("cpu", None),
    ],
)
def test_the_peak_is_that_of_the_card(name: str, peak: float | None):
    assert peak_flops(name) == peak
