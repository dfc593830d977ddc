"""Whole trainings whose micro-batches several processes share: the weights of one process."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine.distributed import destroy_process_group
from graphcredit.trainer.engine.opening import open_engine
from graphcredit.trainer.training import train
from tests.trainer import context_worker, rank_worker, shard_worker
from tests.trainer.logs import random_episodes, token_store
from tests.trainer.models import save_tiny_model
from tests.trainer.ranks import run_ranks

pytestmark = pytest.mark.slow

PPO: dict[str, Any] = {"objective": "ppo", "entropy_coefficient": 0.02}
GSPO: dict[str, Any] = {"objective": "gspo", "share_prefixes": True}
GMPO: dict[str, Any] = {
    "objective": "gmpo",
    "correction": "geometric-mask",
    "correction_low": 0.1,
    "off_policy_limit": 0.2,
    "entropy_share": 0.5,
}
"""All that is taken over a whole response."""

OBJECTIVES = {options["objective"]: options for options in (PPO, GSPO, GMPO)}
LAYOUTS = {2: (2,), 4: (2, 4)}
"""Number of processes to sizes of a group: two as one, four as two, four as one."""


def _config(tmp_path: Path, out: str, **options: Any) -> TrainConfig:
    """Two epochs of three updates, so that ratios differ from 1.

    The model has no biases: that of a key has a gradient of noise, which AdamW makes large.
    """
    if not (tmp_path / "s").exists():
        token_store(tmp_path / "s", random_episodes(0, 10, vocabulary=3, max_response=12))
        save_tiny_model(tmp_path / "m", "llama", num_hidden_layers=2)
    chosen: dict[str, Any] = {"store": tmp_path / "s", "model": str(tmp_path / "m")}
    chosen |= {"batch_size": 9, "epochs": 2, "max_tokens": 64, "learning_rate": 1e-3}
    chosen |= {"device": "cpu", "tensorboard": False, "allow_mismatch": True, "router_loss": 0.0}
    chosen |= {"mismatch_sample": 8}
    chosen |= {"out": tmp_path / out, **options}
    return TrainConfig(**chosen)


def _rows(config: TrainConfig) -> list[dict[str, Any]]:
    lines = (config.out / "metrics.jsonl").read_text().splitlines()
    others = {"seconds", "data_wait", "tokens_per_second", "peak_memory", "mfu", "rank_imbalance"}
    return [
        {k: v for k, v in json.loads(line).items() if k not in others and v is not None}
        for line in lines
    ]


def _assert_alike(found: TrainConfig, expected: TrainConfig) -> None:
    ours, theirs = _rows(found), _rows(expected)
    assert len(ours) == len(theirs) > 0
    for one, other in zip(ours, theirs, strict=True):
        assert one == pytest.approx(other, rel=1e-5, abs=1e-6)
    name = Path("model", "model.safetensors")
    rank_worker.assert_close(load_file(found.out / name), load_file(expected.out / name))


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train with each objective in each layout; return where."""
    root = tmp_path_factory.mktemp("together")
    for world_size, sizes in LAYOUTS.items():
        configs = [
            _config(root, f"{name}-{size}-of-{world_size}", context_parallel=size, **options)
            for name, options in OBJECTIVES.items()
            for size in sizes
        ]
        assert run_ranks(world_size, shard_worker.trained, *configs) == [0] * world_size
    return root


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_processes_that_share_micro_batches_train_the_weights_of_one(
    together: Path, objective: str
):
    torch.set_num_threads(1)
    alone = _config(together, f"{objective}-alone", **OBJECTIVES[objective])
    train(alone)
    assert max(row["approx_kl"] for row in _rows(alone)) > 1e-5
    for world_size, sizes in LAYOUTS.items():
        for size in sizes:
            _assert_alike(_config(together, f"{objective}-{size}-of-{world_size}"), alone)


def test_a_training_goes_on_in_another_layout(tmp_path: Path):
    """Two updates as two groups of two, two as one of two, and the rest alone."""
    torch.set_num_threads(1)
    alone = _config(tmp_path, "alone", **GSPO)
    config = _config(tmp_path, "moved", checkpoint_every=1, **GSPO)
    train(alone)
    shared = config.changed(context_parallel=2)
    for world_size, num_updates in ((4, 2), (2, 4)):
        codes = run_ranks(world_size, context_worker.stopped, shared, num_updates)
        assert codes == [0] * world_size
        newest = max((config.out / "checkpoints").glob("update-*"))
        assert newest.name == f"update-{num_updates:06d}"
    train(config)
    _assert_alike(config, alone)


def test_copies_offloading_and_adapters_share_micro_batches_too(tmp_path: Path):
    save_tiny_model(tmp_path / "model", "llama", tie_word_embeddings=True)
    layouts: list[dict[str, Any]] = [{}, {"context_parallel": 2}, {"context_parallel": 4}]
    layouts += [{"context_parallel": 2, "replicate": 2}, {"context_parallel": 2, "offload": True}]
    layouts += [{"context_parallel": 4, "reduce_gradients": "micro-batch"}]
    layouts += [{"context_parallel": 2, "gradient_checkpointing": True}]
    assert run_ranks(4, shard_worker.laid_out, tmp_path, layouts) == [0] * 4
    name = str(tmp_path / "model")
    for update, (world_size, size) in enumerate(((2, 2), (4, 2), (3, 1))):
        options = {"context_parallel": size}
        codes = run_ranks(world_size, shard_worker.leg, tmp_path, 4, update, 1, options)
        assert codes == [0] * world_size
    expected = shard_worker.alone(tmp_path, 4, 3)
    found = open_engine(name, rank_worker.config(name, 4))
    found.load_state(rank_worker.newest(found, tmp_path / "out"))
    rank_worker.assert_close(found.state().weights, expected.state().weights)
    destroy_process_group()


def test_experts_are_balanced_over_slices(tmp_path: Path):
    torch.set_num_threads(1)
    save_tiny_model(tmp_path / "mixture", "mixtral", num_local_experts=4)
    options = {"model": str(tmp_path / "mixture"), "router_loss": 0.25, "epochs": 1}
    alone = _config(tmp_path, "alone", **options)
    train(alone)
    assert all(row["router_loss"] > 0.01 for row in _rows(alone))
    shared = _config(tmp_path, "shared", context_parallel=2, **options)
    assert run_ranks(4, shard_worker.trained, shared) == [0] * 4
    _assert_alike(shared, alone)
