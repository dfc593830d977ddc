"""What tests of engines and their checkpoints share: options, an identity, and a comparison."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine.distributed import Process
from graphcredit.trainer.fingerprint import Identity
from graphcredit.trainer.output.checkpoint import Checkpoint, Progress, latest_checkpoint

LEARNING_RATE = 1e-3
IDENTITY = Identity(
    plan="a plan", configuration="options", model="weights", reference="", arithmetic="float32"
)


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


def newest(process: Process, directory: Path) -> Checkpoint:
    checkpoint, notices = latest_checkpoint(process, directory, IDENTITY)
    assert checkpoint is not None
    assert notices == []
    return checkpoint
