"""Which models the trainer takes, as far as configuration and architecture tell."""

from pathlib import Path
from typing import Any

from torch import nn

from graphcredit.store.errors import InputError, library_errors
from graphcredit.trainer.model.source import read_config, source_rule

_PACKABLE_LAYERS = frozenset({"full_attention", "sliding_attention"})
"""Kinds of layers that can be kept from looking across samples."""


def check_config(directory: Path) -> None:
    """Refuse a model whose configuration says that it cannot be trained.

    Raises:
        InputError: The configuration cannot be read, the weights are quantised, or packed samples
            would see each other.
    """
    with library_errors(source_rule(directory)):
        config = read_config(directory)
    if getattr(config, "quantization_config", None) is not None:
        raise InputError(
            f"{directory} is quantised, and quantised weights cannot be trained: take the model "
            "it was made from"
        )
    kinds = getattr(config.get_text_config(), "layer_types", None) or ()
    others = sorted({*kinds} - _PACKABLE_LAYERS)
    if others:
        raise InputError(
            f"{directory} has {', '.join(others)} layers, in which packed samples would see each "
            "other; only models of full and sliding-window attention can be trained"
        )


def check_architecture(directory: Path, model: Any) -> None:
    """Refuse a model whose attention or head cannot be computed in the trainer's way.

    Args:
        directory: Where it is from.
        model: The transformers model; its weights do not count.

    Raises:
        InputError: It cannot.
    """
    if not model._supports_attention_backend:
        raise InputError(
            f"{directory}: {type(model).__name__} computes attention in its own code, where packed "
            "samples would see each other; train a model whose attention transformers can exchange"
        )
    head = model.get_output_embeddings()
    if type(head) is not nn.Linear:
        raise InputError(
            f"{directory}: the last layer of {type(model).__name__} must be linear, because its "
            f"logits are made block by block, but is {type(head).__name__}"
        )
