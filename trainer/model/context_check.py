"""Refuse models whose micro-batches several processes cannot run together, before one is loaded."""

from collections.abc import Iterable

from graphcredit.store.errors import InputError, library_errors
from graphcredit.trainer.model.context import refuse_heads
from graphcredit.trainer.model.source import find_model, read_config, source_rule
from graphcredit.trainer.model.vision import has_vision


def check_context(models: Iterable[str], size: int) -> None:
    """Check the configurations of the models that score steps.

    Args:
        models: Directories, or names in the local Hugging Face cache.
        size: Processes that run a micro-batch together.

    Raises:
        InputError: A model sees, or its attention heads cannot be shared by so many.
    """
    if size > 1:
        for name in models:
            _check(name, size)


def _check(name: str, size: int) -> None:
    directory = find_model(name)
    with library_errors(source_rule(directory)):
        config = read_config(directory)
    if has_vision(config):
        raise InputError(
            "context_parallel must be 1 for a model with a vision tower, whose images cannot be "
            f"cut into slices: got {size}, and {name} is a {config.model_type}. Train it without "
            "context_parallel"
        )
    refuse_heads(config.get_text_config().num_attention_heads, size, name)
