"""Mixtures of experts, against whole passes of transformers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from graphcredit.store import Store
from graphcredit.store.errors import InputError
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.model.layers import model_shape
from graphcredit.trainer.model.loading import load_shapes
from graphcredit.trainer.preview import preview
from graphcredit.trainer.training import train
from tests.trainer.logs import Row, episode, token_store, turn
from tests.trainer.models import save_tiny_model

_MIXTURES: dict[str, dict[str, Any]] = {
    "mixtral": {"num_local_experts": 4},
    "qwen2_moe": {
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
        "shared_expert_intermediate_size": 32,
        "decoder_sparse_step": 2,
    },
    "qwen3_moe": {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32},
}
_ATTENTION = "q_proj,k_proj,v_proj,o_proj"


def _steps() -> list[list[Row]]:
    """Return two trajectories of six steps, two of which are equal and two begin alike."""
    random = np.random.default_rng(0)

    def ids(count: int) -> list[int]:
        return random.integers(3, 90, count).tolist()

    history, first, second = ids(9), ids(3), ids(5)
    return [
        episode(
            "won",
            turn(history, first, advantage=0.5),
            turn([*history, *first, *ids(4)], ids(4), advantage=-1.0),
            turn(ids(7), ids(2), advantage=1.5),
        ),
        episode(
            "lost",
            turn(history, first, advantage=-0.5),
            turn([*history, *second], ids(6), advantage=-1.0),
            turn(ids(11), ids(1), advantage=1.0),
            success=False,
        ),
    ]


def _config(tmp_path: Path, store: Store, model: str, **options: Any) -> TrainConfig:
    chosen: dict[str, Any] = {"objective": "reinforce", "correction": "bypass"}
    chosen |= {"kl_coefficient": 0.0, "mismatch_tolerance": 1e9}
    chosen |= {"device": "cpu", "learning_rate": 1e-3}
    out = options.pop("out", tmp_path / "out")
    return TrainConfig(store=store.root, out=out, model=model, **{**chosen, **options})


def _metrics(config: TrainConfig) -> dict[str, float]:
    (line,) = (config.out / "metrics.jsonl").read_text().splitlines()
    return json.loads(line)


def _written_out(model: Any, steps: list[list[Row]]) -> tuple[float, float]:
    """Return the loss and the gradient's norm, one step at a time."""
    rows = [row for trajectory in steps for row in trajectory]
    count = sum(len(row["response_ids"]) for row in rows)
    loss = torch.zeros(())
    for row in rows:
        prompt, response = row["prompt_ids"], row["response_ids"]
        logits = model(torch.tensor([[*prompt, *response]])).logits
        predicted = logits[0, len(prompt) - 1 : -1].log_softmax(-1)
        chosen = predicted.gather(-1, torch.tensor(response)[:, None])
        loss = loss - row["advantage"] * chosen.sum() / count
    loss.backward()
    norm = torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm()
    return loss.item(), norm.item()


@pytest.mark.parametrize("kind", _MIXTURES)
def test_loss_and_gradient_are_those_of_steps_one_by_one(tmp_path: Path, kind: str):
    """A large micro-batch, many small ones, shared prefixes, layers computed again."""
    name = save_tiny_model(tmp_path / "m", kind, **_MIXTURES[kind])
    store = token_store(tmp_path / "s", _steps(), num_shards=2)
    loss, norm = _written_out(AutoModelForCausalLM.from_pretrained(name), _steps())
    ways: list[dict[str, Any]] = [
        {"max_tokens": 200},
        {"max_tokens": 20, "gradient_checkpointing": True},
        {"max_tokens": 40, "share_prefixes": True},
    ]
    for number, way in enumerate(ways):
        config = _config(tmp_path, store, name, out=tmp_path / f"out-{number}", **way)
        train(config)
        metrics = _metrics(config)
        assert metrics["loss"] == pytest.approx(loss, rel=1e-5)
        assert metrics["grad_norm"] == pytest.approx(norm, rel=1e-4)


def test_adapters_of_attention_are_merged_and_those_of_experts_refused(tmp_path: Path):
    name = save_tiny_model(tmp_path / "m", "qwen3_moe", **_MIXTURES["qwen3_moe"])
    store = token_store(tmp_path / "s", _steps())
    config = _config(tmp_path, store, name, lora_rank=2, lora_alpha=64.0, learning_rate=0.1)
    for targets in ("all-linear", "down_proj"):
        with pytest.raises(InputError, match=r"experts or their router.* q_proj,k_proj"):
            train(config.changed(lora_targets=targets))
    train(config.changed(lora_targets=_ATTENTION))
    before, after = (
        AutoModelForCausalLM.from_pretrained(path).state_dict()
        for path in (name, config.out / "model")
    )
    changed = {key for key in before if not torch.equal(before[key], after[key])}
    assert changed == {key for key in before if "self_attn" in key and "_norm" not in key}


def test_operations_count_the_experts_that_a_token_goes_through(tmp_path: Path):
    """Of four experts of 3 · 64 · 128 weights in each of two layers, a token takes two."""
    name = save_tiny_model(tmp_path / "m", "mixtral", **_MIXTURES["mixtral"])
    config = _config(tmp_path, token_store(tmp_path / "s", _steps()), name)
    scorer = load_shapes(name, config)
    total = sum(p.numel() for p in scorer.parameters()) - 2 * 97 * 64
    assert model_shape(scorer).num_body == total - 2 * 2 * 3 * 64 * 128
    adapted = load_shapes(name, config.changed(lora_rank=2, lora_targets=_ATTENTION))
    assert model_shape(adapted).num_frozen == model_shape(scorer).num_body
    assert preview(config, num_processes=1)["memory"]["parameters"] == 4 * (total + 2 * 97 * 64)
