"""Work for two processes that stand for two machines: train, each with paths of its own."""

import os
from pathlib import Path

from graphcredit.store.errors import InputError
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.training import train


def trained(stores: tuple[str, str], outs: tuple[str, str], model: str, said: str) -> None:
    """Train from this machine's store into this machine's output; write down a refusal."""
    rank = int(os.environ["RANK"])
    config = TrainConfig(
        store=Path(stores[rank]),
        model=model,
        out=Path(outs[rank]),
        device="cpu",
        max_tokens=64,
        allow_mismatch=True,
        tensorboard=False,
        timeout=1.0,
    )
    try:
        train(config)
    except InputError as error:
        Path(said, str(rank)).write_text(str(error), encoding="utf-8")
