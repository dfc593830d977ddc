"""Dropout of adapters: the only one in training, and only while gradients are made."""

from collections.abc import Generator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def dropping(model: nn.Module, seed: int) -> Generator[None]:
    """Drop inputs of adapters within this context; does nothing without a dropout.

    Args:
        model: With its adapters.
        seed: Of the random numbers: a training that is resumed draws those it would have drawn.
    """
    layers = [
        part
        for name, module in model.named_modules()
        if name.endswith("lora_dropout")
        for part in module.children()
        if isinstance(part, nn.Dropout)
    ]
    if not layers:
        yield
        return
    torch.manual_seed(seed)
    try:
        for layer in layers:
            layer.train()
        yield
    finally:
        for layer in layers:
            layer.eval()
