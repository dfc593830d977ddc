"""Load a Hugging Face causal LM for training, whole or without its weights, or refuse it."""

from pathlib import Path
from typing import Any

import torch
from accelerate import init_empty_weights
from safetensors import safe_open
from torch import nn
from transformers import GenerationConfig
from transformers.utils import GENERATION_CONFIG_NAME
from transformers.utils.logging import disable_progress_bar

from graphcredit.store.errors import InputError, library_errors
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.model.adapters import with_adapters
from graphcredit.trainer.model.layers import recompute_activations
from graphcredit.trainer.model.logprobs import Scorer
from graphcredit.trainer.model.packed_attention import (
    PACKED_ATTENTION,
    register_attention,
    set_attention,
)
from graphcredit.trainer.model.packing_check import check_scorer
from graphcredit.trainer.model.source import find_model, models_of, read_config, source_rule

_PACKABLE_LAYERS = frozenset({"full_attention", "sliding_attention"})
"""Kinds of layers that can be kept from looking across samples."""


def load_model(name: str, config: TrainConfig) -> Scorer:
    """Load a causal LM in float32 on the CPU, with all weights from disk and without dropout.

    Its log-probabilities for packed samples are compared with its own forward pass first, which
    reveals features of an architecture that the trainer does not support.

    Args:
        name: A directory, or a name in the local Hugging Face cache; nothing is downloaded.
        config: How it is computed, whether LoRA adapters are added, and the seed of their first
            weights.

    Raises:
        InputError: There is no such model, it has no safetensors, it lacks weights, packed samples
            would see each other, or its log-probabilities cannot be reproduced.
    """
    directory = find_model(name)
    _check_config(directory)
    scorer = _scorer(directory, load_weights(directory))
    check_scorer(str(directory), scorer, shares_prefixes=config.share_prefixes)
    return _prepared(scorer, config)


def load_hollow(name: str, config: TrainConfig) -> Scorer:
    """Return a causal LM as `load_model` does, but with its weights on the meta device.

    Buffers, which its constructor computes, are there, and the same.

    Raises:
        InputError: As for `load_model`, as far as the configuration tells.
    """
    directory = find_model(name)
    _check_config(directory)
    with library_errors(source_rule(directory)), init_empty_weights(include_buffers=False):
        known = read_config(directory)
        model = models_of(known).from_config(known, dtype=torch.float32)
    # On its way to the meta device each of two tied weights became one of its own.
    model.tie_weights()
    if model.can_generate() and (directory / GENERATION_CONFIG_NAME).is_file():
        with library_errors(source_rule(directory)):
            model.generation_config = GenerationConfig.from_pretrained(directory)
    return _prepared(_scorer(directory, model.eval()), config)


def _prepared(scorer: Scorer, config: TrainConfig) -> Scorer:
    """Return a model with its adapters, whose layers recompute their activations if they shall."""
    if config.lora_rank:
        scorer.model = with_adapters(scorer.model, config, config.adapter_seed)
    recompute_activations(scorer, config)
    return scorer


def load_shapes(name: str, config: TrainConfig) -> Scorer:
    """Return a causal LM as `load_model` does, but all of it on the meta device.

    Raises:
        InputError: As for `load_model`, as far as the configuration tells.
    """
    return load_hollow(name, config).to("meta")


def check_model(name: str, config: TrainConfig) -> None:
    """Refuse a model that `load_model` would refuse, as far as can be told without its weights.

    Raises:
        InputError: As for `load_model`. Missing weights, and log-probabilities that cannot be
            reproduced, are found only when the model is loaded.
    """
    directory = find_model(name)
    with library_errors(source_rule(directory)):
        for path in directory.glob("*.safetensors"):
            with safe_open(path, "pt"):
                pass
    load_shapes(name, config)


def load_weights(directory: Path) -> Any:
    """Load a causal LM in float32 from safetensors.

    Raises:
        InputError: There are no safetensors, weights are missing, or the architecture is unknown.
    """
    if not list(directory.glob("*.safetensors")):
        raise InputError(
            f"{directory} must hold its weights as *.safetensors, but has none: load the model "
            "with transformers and save_pretrained() it; other formats can run code when read"
        )
    disable_progress_bar()
    with library_errors(source_rule(directory)):
        model, report = models_of(read_config(directory)).from_pretrained(
            directory,
            dtype=torch.float32,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
        )
    lacking = sorted([*report["missing_keys"], *map(str, report["mismatched_keys"])])
    if lacking:
        raise InputError(
            f"{directory} must hold every weight of {type(model).__name__}, but {len(lacking)} "
            f"are missing or of another shape, such as {lacking[0]}: training would start from "
            "random numbers"
        )
    return model.eval()


def _scorer(directory: Path, model: Any) -> Scorer:
    _check_architecture(directory, model)
    register_attention()
    set_attention(model, PACKED_ATTENTION)
    return Scorer(model)


def _check_config(directory: Path) -> None:
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


def _check_architecture(directory: Path, model: Any) -> None:
    """Refuse a model whose attention or head cannot be computed in the trainer's way.

    Raises:
        InputError: It cannot.
    """
    if not model._supports_attention_backend:
        raise InputError(
            f"{directory}: {type(model).__name__} computes attention in its own code, where packed "
            "samples would see each other; train a model whose attention transformers can exchange"
        )
    head = model.get_output_embeddings()
    if type(head) is not nn.Linear or getattr(head, "bias", None) is not None:
        raise InputError(
            f"{directory}: the last layer of {type(model).__name__} must be linear and have no "
            f"bias, because its logits are made block by block, but is {head}"
        )
