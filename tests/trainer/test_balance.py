"""Mixtures of experts: the balance of their use, against transformers' own and whole batches."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

from graphcredit.store import Store
from graphcredit.store.errors import InputError
from graphcredit.store.sql.catalog import connect
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.loss.balance import Choices, balance_loss, count_choices
from graphcredit.trainer.model.layers import experts_of, model_shape
from graphcredit.trainer.model.loading import load_shapes
from graphcredit.trainer.preview import preview
from graphcredit.trainer.training import train
from tests.trainer.logs import Row, episode, token_store, turn
from tests.trainer.models import save_tiny_model
from tests.trainer.ranks import run_ranks
from tests.trainer.shard_worker import trained

_COEFFICIENT = 0.25
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
for _settings in _MIXTURES.values():
    _settings["router_aux_loss_coef"] = _COEFFICIENT
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


def _written_out(model: Any, steps: list[list[Row]]) -> tuple[float, float, float]:
    """Return loss, its part from experts, and the gradient's norm, one step at a time."""
    rows = [row for trajectory in steps for row in trajectory]
    count = sum(len(row["response_ids"]) for row in rows)
    logits: list[tuple[torch.Tensor, ...]] = []
    policy = torch.zeros(())
    for row in rows:
        prompt, response = row["prompt_ids"], row["response_ids"]
        found = model(torch.tensor([[*prompt, *response]]), output_router_logits=True)
        logits.append(found.router_logits)
        predicted = found.logits[0, len(prompt) - 1 : -1].log_softmax(-1)
        chosen = predicted.gather(-1, torch.tensor(response)[:, None])
        policy = policy - row["advantage"] * chosen.sum() / count
    experts = experts_of(model.config)
    assert experts is not None
    layers = [torch.cat(layer) for layer in zip(*logits, strict=True)]
    each = [load_balancing_loss_func((x,), experts.count, experts.chosen) for x in layers]
    router = _COEFFICIENT * torch.stack(each).mean()
    loss = policy + router
    loss.backward()
    norm = torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm()
    return loss.item(), router.item(), norm.item()


@pytest.mark.parametrize("kind", _MIXTURES)
def test_loss_and_gradient_are_those_of_steps_one_by_one(tmp_path: Path, kind: str):
    """A large micro-batch, many small ones, shared prefixes, layers computed again."""
    name = save_tiny_model(tmp_path / "m", kind, **_MIXTURES[kind])
    store = token_store(tmp_path / "s", _steps(), num_shards=2)
    loss, router, norm = _written_out(AutoModelForCausalLM.from_pretrained(name), _steps())
    assert router > 0.01
    ways: list[dict[str, Any]] = [
        {"max_tokens": 200},
        {"max_tokens": 20, "gradient_checkpointing": True},
        {"max_tokens": 40, "share_prefixes": True},
    ]
    for number, way in enumerate(ways):
        config = _config(tmp_path, store, name, out=tmp_path / f"out-{number}", **way)
        train(config)
        found = _metrics(config)
        assert found["router_loss"] == pytest.approx(router, rel=1e-5)
        assert found["loss"] == pytest.approx(loss, rel=1e-5)
        assert found["grad_norm"] == pytest.approx(norm, rel=1e-4)
    with connect(store) as connection:
        rows = connection.sql("SELECT router_loss FROM training").fetchall()
    assert [value for (value,) in rows] == pytest.approx([router] * 3, rel=1e-5)


@pytest.mark.slow
def test_two_processes_balance_what_both_have(tmp_path: Path):
    name = save_tiny_model(tmp_path / "m", "mixtral", **_MIXTURES["mixtral"])
    store = token_store(tmp_path / "s", _steps())
    alone = _config(tmp_path, store, name, max_tokens=20)
    train(alone)
    both = alone.changed(out=tmp_path / "both")
    assert run_ranks(2, trained, both) == [0, 0]
    expected, found = _metrics(alone), _metrics(both)
    for metric in ("loss", "router_loss", "grad_norm"):
        assert found[metric] == pytest.approx(expected[metric], rel=1e-4)


def test_the_loss_by_hand():
    """Two experts, one choice: both tokens take the first, which has 3/4 and 2/3 of them."""
    logits = [torch.tensor([[3.0, 1.0], [2.0, 1.0]]).log()]
    copies = torch.tensor([1, 3])
    counts = count_choices(logits, copies, 1)
    assert counts.tolist() == [[4.0, 0.0]]
    choices = Choices(counts=counts, num_tokens=4)
    found = balance_loss(logits, copies, choices).item()
    assert found == pytest.approx(2 * 1 * (3 / 4 + 3 * 2 / 3) / 4)
    halves = [
        balance_loss([logits[0][[n]]], copies[[n]], choices).item() for n in range(len(copies))
    ]
    assert sum(halves) == pytest.approx(found)
    assert balance_loss(logits, torch.zeros(2), choices).item() == 0


def test_experts_used_alike_cost_as_many_as_a_token_goes_through():
    logits = [torch.eye(4) + torch.eye(4).roll(1, 0)]
    copies = torch.ones(4)
    choices = Choices(counts=count_choices(logits, copies, 2), num_tokens=4)
    assert balance_loss(logits, copies, choices).item() == pytest.approx(2)


def test_a_model_whose_coefficient_is_0_has_no_such_loss(tmp_path: Path):
    settings = {**_MIXTURES["mixtral"], "router_aux_loss_coef": 0.0}
    name = save_tiny_model(tmp_path / "m", "mixtral", **settings)
    config = _config(tmp_path, token_store(tmp_path / "s", _steps()), name)
    train(config)
    assert "router_loss" not in _metrics(config)


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
