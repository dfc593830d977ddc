"""Work for several processes that share micro-batches: a training that stops half way."""

from collections.abc import Iterator
from typing import Any

import torch

from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine.distributed import destroy_process_group
from graphcredit.trainer.engine.optimizer_step import Updater
from graphcredit.trainer.training import train


class _EnoughError(Exception):
    """A training was told to stop."""


def stopped(config: TrainConfig, num_updates: int) -> None:
    """Make some updates of a training as one of several processes, and leave its checkpoints."""
    torch.set_num_threads(1)
    run = Updater.run

    def some(self: Updater, first: int, *others: Any) -> Iterator[Any]:
        for number, metrics in run(self, first, *others):
            if number == num_updates:
                raise _EnoughError
            yield number, metrics

    Updater.run = some  # type: ignore[method-assign]
    try:
        train(config)
    except _EnoughError:
        destroy_process_group()
