"""The learning rate of each optimizer step."""

import math

from graphcredit.trainer.options import OptimizerOptions


def learning_rate(options: OptimizerOptions, update: int, num_updates: int) -> float:
    """Return the learning rate of an update: a linear warm-up, then the schedule down to 0.

    Args:
        options: Peak, warm-up and schedule.
        update: 0-based number of the update.
        num_updates: Updates of the training.
    """
    if update < options.warmup:
        return options.learning_rate * (update + 1) / options.warmup
    done = (update - options.warmup) / max(num_updates - options.warmup, 1)
    factor = {
        "constant": 1.0,
        "linear": 1 - done,
        "cosine": (1 + math.cos(math.pi * done)) / 2,
    }[options.schedule]
    return options.learning_rate * factor
