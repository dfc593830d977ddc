"""One rank of two: goes on from a checkpoint that one process wrote, and writes one itself."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine.distributed import Process, destroy_process_group
from graphcredit.trainer.engine.engine import TrainingEngine
from graphcredit.trainer.engine.opening import open_engine
from graphcredit.trainer.fingerprint import Identity
from graphcredit.trainer.output.checkpoint import (
    Checkpoint,
    Progress,
    latest_checkpoint,
    save_checkpoint,
)
from tests.trainer.packs import Pair, pack_samples, random_samples

LEARNING_RATE = 1e-3
IDENTITY = Identity(
    plan="a plan", configuration="options", model="weights", reference="", arithmetic="float32"
)
VARIANTS = {"full": 0, "lora": 4}
"""Name to LoRA rank."""


def config(model: str, lora_rank: int) -> TrainConfig:
    return TrainConfig(
        store=Path(),
        out=Path(),
        model=model,
        device="cpu",
        lora_rank=lora_rank,
        # The gradient of a key's bias is noise, which is not to be made as large as the others.
        adam_epsilon=1e-5,
    )


def progress(update: int) -> Progress:
    return Progress(update=update, identity=IDENTITY.as_json())


def whole(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return copies of tensors that an engine holds, whole."""
    return {
        name: (t.full_tensor() if isinstance(t, DTensor) else t).detach().clone()
        for name, t in tensors.items()
    }


def assert_close(
    found: Mapping[str, Tensor], expected: Mapping[str, Tensor], *, gap: float = 1e-5
) -> None:
    """Compare all tensors of a quantity as one: a key's bias alone has a gradient of noise."""
    assert found.keys() == expected.keys()
    for kind in ("weight", "bias", "step", "exp_avg", "exp_avg_sq"):
        names = [name for name in expected if name.endswith(f".{kind}")]
        if names:
            ours, theirs = (torch.cat([s[n].flatten() for n in names]) for s in (found, expected))
            assert (ours - theirs).norm() <= gap * theirs.norm(), kind


def samples_of(update: int) -> list[Pair]:
    return random_samples(7, seed=update)


def train(engine: TrainingEngine, update: int) -> float:
    """Take one update on seven samples, three micro-batches a rank, uneven on purpose.

    One rank has all samples; of two, the first has six, and the second one and two dummies.
    """
    samples = samples_of(update)
    num_tokens = sum(len(response) for _, response in samples)
    parts = [samples[:3], samples[3:4], samples[4:6]], [samples[6:], samples[:1], samples[:1]]
    for k in range(3):
        mine = parts[engine.rank][k]
        weight = 1 / num_tokens if engine.rank == 0 or k == 0 else 0.0
        if engine.world_size == 1 and k == 2:
            mine = samples[4:]
        loss = _loss(engine, mine, weight)
        engine.backward(loss)
    return engine.update(LEARNING_RATE)


def _loss(engine: TrainingEngine, samples: list[Pair], weight: float) -> Tensor:
    batch = pack_samples(samples, weight=weight)
    tokens = engine.score(batch, want_entropy=True)
    return -((tokens.logprob + 0.1 * tokens.entropy) * torch.tensor(batch.weight)).sum()


def newest(process: Process, directory: Path) -> Checkpoint:
    checkpoint, notices = latest_checkpoint(process, directory, IDENTITY)
    assert checkpoint is not None
    assert notices == []
    return checkpoint


def main(directory: Path) -> None:
    torch.set_num_threads(1)
    norms: dict[str, list[float]] = {}
    for variant, lora_rank in VARIANTS.items():
        name = str(directory / "model")
        engine = open_engine(name, config(name, lora_rank))
        checkpoints = directory / variant
        with engine.frozen():
            engine.score(pack_samples(samples_of(0)))
        engine.load_state(newest(engine, checkpoints))
        norms[variant] = [train(engine, update) for update in (2, 3)]
        save_checkpoint(engine, checkpoints, engine.state(), progress(4), keep=2)
        engine.save_pretrained(directory / f"{variant}-saved")
    _meet(engine)
    assert engine.broadcast(norms if engine.rank == 0 else None) == norms
    if engine.rank == 0:
        (directory / "norms.json").write_text(json.dumps(norms))
    destroy_process_group()


def _meet(engine: TrainingEngine) -> None:
    assert engine.world_size == 2
    values = np.array([1.0 + engine.rank, 1e-17])
    assert engine.all_reduce_sum(values).tolist() == [3.0, 2e-17]
    assert engine.all_reduce_max(values).tolist() == [2.0, 1e-17]
    assert engine.broadcast({"rank": engine.rank, "text": "ü"}) == {"rank": 0, "text": "ü"}
