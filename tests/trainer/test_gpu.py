"""Trainings on a GPU, whose kernels CI has not: near those of the CPU, under each option.

`make gpu` runs all tests marked so, and the table of `benchmarks.train`.
"""

import gc
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.train_memory import write_inputs
from graphcredit.store import Store
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine.distributed import Process, destroy_process_group
from graphcredit.trainer.preview import preview
from graphcredit.trainer.training import train
from tests.trainer.logs import episode, random_episodes, token_store, turn
from tests.trainer.models import save_tiny_model
from tests.trainer.vision import picture, prompt, save_tiny_seer

DEVICE = "cuda"

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    # Of every torch, driver and library that a machine may have.
    pytest.mark.filterwarnings("default"),
]


@pytest.fixture(autouse=True)
def _world() -> Iterator[None]:
    yield
    destroy_process_group()
    gc.collect()  # Modules in shards refer to each other, and would count in the next peak.


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_tiny_model(tmp_path_factory.mktemp("model"), initializer_range=0.1)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return token_store(tmp_path_factory.mktemp("s") / "store", random_episodes(0, 12))


def _config(store: Store, model: str, out: Path, **options: Any) -> TrainConfig:
    chosen: dict[str, Any] = {"mismatch_tolerance": 1e9}
    chosen |= {"batch_size": 8, "max_tokens": 64, "learning_rate": 1e-4, "checkpoint_every": 1}
    return TrainConfig(store=store.root, out=out, model=model, **{**chosen, **options})


def _rows(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def _assert_near(found: list[dict[str, Any]], expected: list[dict[str, Any]], gap: float) -> None:
    assert len(found) == len(expected) > 1
    for ours, theirs in zip(found, expected, strict=True):
        for name in ("loss", "policy_loss", "entropy"):
            assert ours[name] == pytest.approx(theirs[name], abs=gap, rel=gap), name
        assert ours["grad_norm"] == pytest.approx(theirs["grad_norm"], rel=10 * gap)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compile": True},
        {"share_prefixes": True},
        {"gradient_checkpointing": True},
        {"gradient_checkpointing": True, "compile": True, "share_prefixes": True},
        {"lora_rank": 4},
        {"entropy_coefficient": 0.01, "objective": "gspo"},
        {"dtype": "float32"},
    ],
    ids=lambda options: " ".join(map(str, options)) or "default",
)
def test_a_training_is_near_that_on_the_cpu(
    tmp_path: Path, store: Store, model: str, options: dict[str, Any]
):
    config = _config(store, model, tmp_path / "gpu", device=DEVICE, dtype="bfloat16")
    config = config.changed(**options)
    on_cpu = _config(store, model, tmp_path / "cpu", device="cpu", dtype="float32")
    plain = {"compile": False, "dtype": "float32"}
    train(on_cpu.changed(**{**options, **plain}))
    destroy_process_group()
    result = train(config)
    assert result is not None
    gap = 1e-4 if config.dtype == "float32" else 2e-2
    _assert_near(_rows(config.out), _rows(on_cpu.out), gap)
    assert all((row["peak_memory"] or 0) > 0 for row in _rows(config.out)) == (DEVICE == "cuda")


def _trained_on(device: str, config: TrainConfig) -> list[dict[str, Any]]:
    destroy_process_group()
    train(config.changed(device=device, out=config.out.with_name(device)))
    return _rows(config.out.with_name(device))


def test_a_mixture_is_near_that_on_the_cpu(tmp_path: Path, store: Store):
    """In float32: rounding to bfloat16 would send tokens to other experts."""
    settings: dict[str, Any] = {"num_local_experts": 4}
    mixture = save_tiny_model(tmp_path / "mixture", "mixtral", **settings)
    config = _config(store, mixture, tmp_path / "out", dtype="float32")
    _assert_near(_trained_on(DEVICE, config), _trained_on("cpu", config), 1e-3)


def test_images_are_near_those_on_the_cpu(tmp_path: Path):
    trajectories = [
        episode(
            f"e{n}",
            turn(
                [5, *prompt((1, 2)), 6 + n],
                [7, 8 + n],
                advantage=1.0 - 2.0 * (n % 2),
                images=[{"bytes": picture(1, 2, seed=n), "path": None}],
            ),
        )
        for n in range(16)
    ]
    seer, seen = save_tiny_seer(tmp_path / "seer"), token_store(tmp_path / "seen", trajectories)
    config = _config(seen, seer, tmp_path / "out", dtype="float32")
    _assert_near(_trained_on(DEVICE, config), _trained_on("cpu", config), 1e-3)


@pytest.mark.parametrize(
    "options",
    [{}, {"gradient_checkpointing": True}, {"lora_rank": 8}],
    ids=lambda options: " ".join(options) or "default",
)
def test_the_estimate_is_near_the_measured_peak(tmp_path: Path, options: dict[str, Any]):
    """The bytes of tensors; the first update has no moments yet while it passes."""
    write_inputs(tmp_path, 4096)
    config = TrainConfig(
        store=tmp_path / "store",
        out=tmp_path / "out",
        model=str(tmp_path / "model"),
        device=DEVICE,
        batch_size=64,
        max_tokens=4096,
        mismatch_tolerance=1e9,
        **options,
    )
    estimated = preview(config, num_processes=1)["memory"]["on_device"]
    train(config)
    measured = max(row["peak_memory"] for row in _rows(config.out))
    assert estimated == pytest.approx(measured, rel=0.15)


def test_a_training_goes_on_from_its_checkpoint(tmp_path: Path, store: Store, model: str):
    """The kernel's gradients are not the same to the bit from run to run; the checkpoints are."""
    config = _config(store, model, tmp_path / "out", device=DEVICE, dtype="bfloat16")
    train(config)
    expected = _rows(config.out)
    (config.out / "result.json").unlink()
    shutil.rmtree(config.out / "model")
    last = max((config.out / "checkpoints").iterdir())
    shutil.rmtree(last)
    destroy_process_group()
    train(config)
    assert (config.out / "model" / "model.safetensors").is_file()
    _assert_near(_rows(config.out), expected, 2e-2)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
def test_two_gpus_train_as_one(tmp_path: Path, store: Store, model: str):
    """Two processes of torchrun, which exchange by NCCL."""
    config = _config(store, model, tmp_path / "two", device=DEVICE, dtype="bfloat16")
    alone = _config(store, model, tmp_path / "one", device=DEVICE, dtype="bfloat16")
    (tmp_path / "train.toml").write_text(config.as_toml(), encoding="utf-8")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = ["-m", "graphcredit.cli.main", "train", "--config", str(tmp_path / "train.toml")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, *launcher, *command], check=True, env=environment, timeout=300)
    train(alone)
    _assert_near(_rows(config.out), _rows(alone.out), 2e-2)


@pytest.fixture
def _refuses_to_wait() -> Iterator[None]:
    torch.cuda.set_sync_debug_mode("error")
    yield
    torch.cuda.set_sync_debug_mode("default")


@pytest.mark.usefixtures("_refuses_to_wait")
@pytest.mark.parametrize("kind", [np.int32, np.int64, np.float32, np.float64, np.bool_])
def test_what_is_put_there_is_what_was_given_and_nothing_waits(kind: type):
    process = Process(torch.device(DEVICE, 0))
    array = np.arange(7).astype(kind)
    found = process.put(array)
    array[:] = 0
    assert found.device.type == DEVICE
    torch.cuda.set_sync_debug_mode("default")
    assert np.array_equal(found.cpu().numpy(), np.arange(7).astype(kind))
