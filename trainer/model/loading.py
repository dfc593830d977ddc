"""Load a Hugging Face causal LM for training, or refuse it with a reason."""

import random
import warnings
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import snapshot_download
from peft import LoraConfig, get_peft_model
from peft.tuners.lora import ParamWrapper
from peft.tuners.tuners_utils import BaseTunerLayer
from safetensors import safe_open
from tokenizers import Tokenizer
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.utils.logging import disable_progress_bar

from graphcredit.store.errors import InputError, library_errors
from graphcredit.trainer.model.experts import Experts, experts_of
from graphcredit.trainer.model.flops import ModelShape
from graphcredit.trainer.model.logprobs import Scorer
from graphcredit.trainer.model.packed_attention import (
    PACKED_ATTENTION,
    register_attention,
    set_attention,
)
from graphcredit.trainer.model.packing_check import check_scorer
from graphcredit.trainer.model.vision import ImageReader, has_vision
from graphcredit.trainer.options import ModelOptions

_PACKABLE_LAYERS = frozenset({"full_attention", "sliding_attention"})
"""Kinds of layers that can be kept from looking across samples."""

LARGE = 1_000_000_000
"""Weights from which layers compute their activations again, unless the options say otherwise."""

_TOKENIZER_FILES = (
    "tokenizer*",
    "vocab*",
    "merges.txt",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template*",
    "*.tiktoken",
    "*.model",
    "*processor_config.json",
)


def load_model(
    name: str, options: ModelOptions, *, adapter_seed: str, shares_prefixes: bool = False
) -> Scorer:
    """Load a causal LM in float32 on the CPU, with all weights from disk and without dropout.

    Its log-probabilities for packed samples are compared with its own forward pass first, which
    reveals features of an architecture that the trainer does not support.

    Args:
        name: A directory, or a name in the local Hugging Face cache; nothing is downloaded.
        options: How it is computed, and whether LoRA adapters are added.
        adapter_seed: Seed of the adapters' first weights.
        shares_prefixes: Whether samples will share prefixes.

    Raises:
        InputError: There is no such model, it has no safetensors, it lacks weights, packed samples
            would see each other, or its log-probabilities cannot be reproduced.
    """
    register_attention()
    directory = find_model(name)
    _check_config(directory)
    model = load_weights(directory)
    _check_attention(directory, model)
    _check_head(directory, model)
    set_attention(model, PACKED_ATTENTION)
    scorer = Scorer(model, head_chunk=options.head_chunk)
    check_scorer(str(directory), scorer, shares_prefixes=shares_prefixes)
    return _prepared(scorer, options, adapter_seed)


def check_model(name: str, options: ModelOptions) -> None:
    """Refuse a model that `load_model` would refuse, as far as can be told without its weights.

    Args:
        name: As for `load_model`.
        options: As for `load_model`.

    Raises:
        InputError: As for `load_model`. Missing weights, and log-probabilities that cannot be
            reproduced, are found only when the model is loaded.
    """
    directory = find_model(name)
    with library_errors(_rule(directory)):
        for path in directory.glob("*.safetensors"):
            with safe_open(path, "pt"):
                pass
    load_shapes(name, options)


def load_shapes(name: str, options: ModelOptions) -> Scorer:
    """Return a causal LM as `load_model` does, but on the meta device: without its weights.

    Raises:
        InputError: As for `load_model`, as far as the configuration tells.
    """
    directory = find_model(name)
    _check_config(directory)
    with library_errors(_rule(directory)), torch.device("meta"):
        known = _read_config(directory)
        model: Any = _models_of(known).from_config(known, dtype=torch.float32)
    _check_attention(directory, model)
    _check_head(directory, model)
    return _prepared(Scorer(model.eval(), head_chunk=options.head_chunk), options, adapter_seed="")


def find_model(name: str) -> Path:
    """Return the directory of a model that is on this machine.

    Raises:
        InputError: It is neither a directory nor a name in the local Hugging Face cache.
    """
    if Path(name).is_dir():
        return Path(name)
    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (OSError, ValueError) as error:
        raise InputError(
            f"the model must be a directory or a name in the local Hugging Face cache, but {name} "
            f"is neither. Nothing is downloaded while training: `hf download {name}` does it before"
        ) from error


def load_weights(directory: Path) -> Any:
    """Load a causal LM in float32 from safetensors.

    Args:
        directory: As `save_pretrained` writes it.

    Raises:
        InputError: There are no safetensors, weights are missing, or the architecture is unknown.
    """
    if not list(directory.glob("*.safetensors")):
        raise InputError(
            f"{directory} must hold its weights as *.safetensors, but has none: load the model "
            "with transformers and save_pretrained() it; other formats can run code when read"
        )
    disable_progress_bar()
    with library_errors(_rule(directory)):
        model, report = _models_of(_read_config(directory)).from_pretrained(
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


def tokenizer_files(directory: Path) -> list[Path]:
    """Return the files of a model's directory that make its tokenizer, and its processor."""
    found = {path for pattern in _TOKENIZER_FILES for path in directory.glob(pattern)}
    return sorted(path for path in found if path.is_file())


def tokenizer_notices(directory: Path, num_rows: int) -> list[str]:
    """Return notices about a model's tokenizer, which training does not use.

    The tokenizer is read from its file, because transformers may add tokens when it opens one.

    Args:
        directory: Directory of the model.
        num_rows: Rows of the model's embedding.
    """
    path = directory / "tokenizer.json"
    if not path.is_file():
        return []
    try:
        last = max(Tokenizer.from_file(str(path)).get_vocab().values(), default=-1)
    except Exception as error:  # tokenizers raises nothing narrower
        return [f"{path} is kept as it is, but cannot be read: {error}"]
    if last < num_rows:
        return []
    return [
        f"{path} has tokens up to {last}, and the model embeds only 0 to {num_rows - 1}: training "
        "uses the ids of the log alone, but who samples with this tokenizer may get others"
    ]


@contextmanager
def quiet_peft() -> Generator[None]:
    """Silence warnings that tell a user nothing.

    One of transformers 5.23 is about a name that only peft 0.21 uses; one of peft is about the
    experts that it was asked to adapt, which are refused anyway.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"The following \w+_pattern keys", RuntimeWarning)
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
        yield


def decoder_layers(scorer: Scorer) -> list[Any]:
    """Return the layers of the decoder: the units of sharding, recomputation and compilation."""
    return [m for m in scorer.modules() if isinstance(m, GradientCheckpointingLayer)]


def num_embeddings(scorer: Scorer) -> int:
    """Return how many token ids a model knows."""
    return scorer.causal_lm.get_input_embeddings().num_embeddings


def model_shape(scorer: Scorer) -> ModelShape:
    """Return the sizes that determine the floating-point operations of a pass."""
    config = scorer.causal_lm.config.get_text_config()
    experts = experts_of(config)
    count = _count if experts is None else experts.num_used
    head = scorer.causal_lm.get_output_embeddings().weight
    ends = {id(p): p.numel() for p in (head, scorer.causal_lm.get_input_embeddings().weight)}
    body = [p for p in scorer.causal_lm.get_decoder().parameters() if id(p) not in ends]
    heads = config.num_attention_heads
    return ModelShape(
        num_body=count(body),
        num_head=head.numel(),
        num_frozen=count(p for p in body if not p.requires_grad),
        is_head_frozen=not head.requires_grad,
        num_layers=config.num_hidden_layers,
        attention_width=heads * (getattr(config, "head_dim", 0) or config.hidden_size // heads),
    )


def load_eyes(name: str) -> ImageReader | None:
    """Return the eyes of a model; None if it has none, or those of a family that is not known.

    Raises:
        InputError: There is no such model.
    """
    directory = find_model(name)
    with library_errors(_rule(directory)):
        config = _read_config(directory)
    return ImageReader(directory, config) if has_vision(config) else None


def _models_of(config: Any) -> Any:
    """Return the automatic class of transformers that loads a model."""
    return AutoModelForImageTextToText if has_vision(config) else AutoModelForCausalLM


def _count(parameters: Iterable[nn.Parameter]) -> int:
    return sum(p.numel() for p in parameters)


def load_experts(name: str) -> Experts | None:
    """Return the experts of a model; None for a dense one.

    Raises:
        InputError: There is no such model.
    """
    directory = find_model(name)
    with library_errors(_rule(directory)):
        return experts_of(_read_config(directory))


def _check_config(directory: Path) -> None:
    with library_errors(_rule(directory)):
        config = _read_config(directory)
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


def _check_head(directory: Path, model: Any) -> None:
    head = model.get_output_embeddings()
    if type(head) is not nn.Linear:
        raise InputError(
            f"{directory}: the last layer of {type(model).__name__} must be linear, because its "
            f"logits are made block by block, but is {type(head).__name__}"
        )


def _read_config(directory: Path) -> Any:
    return AutoConfig.from_pretrained(directory, local_files_only=True, trust_remote_code=False)


def _rule(directory: Path) -> str:
    return f"{directory} must hold a causal LM that transformers knows, without code of its own"


def _check_attention(directory: Path, model: Any) -> None:
    if not model._supports_attention_backend:
        raise InputError(
            f"{directory}: {type(model).__name__} computes attention in its own code, where packed "
            "samples would see each other; train a model whose attention transformers can exchange"
        )


def _prepared(scorer: Scorer, options: ModelOptions, adapter_seed: str) -> Scorer:
    """Add adapters, and let layers recompute their activations, if the options say so."""
    if options.lora_rank:
        scorer.model = _with_lora(scorer.model, options, adapter_seed)
    if checkpoints_layers(scorer, options):
        _checkpoint_layers(scorer)
    return scorer


def checkpoints_layers(scorer: Scorer, options: ModelOptions) -> bool:
    """Return whether layers compute their activations again in the backward pass."""
    if options.gradient_checkpointing is not None:
        return options.gradient_checkpointing
    return sum(p.numel() for p in scorer.parameters()) >= LARGE


def _with_lora(model: Any, options: ModelOptions, adapter_seed: str) -> Any:
    targets = [target.strip() for target in options.lora_targets.split(",")]
    lora = LoraConfig(
        task_type="CAUSAL_LM",
        r=options.lora_rank,
        lora_alpha=options.lora_alpha,  # pyright: ignore[reportArgumentType]
        target_modules=targets[0] if targets == ["all-linear"] else targets,
        lora_dropout=0.0,
    )
    try:
        with torch.random.fork_rng(), quiet_peft():
            torch.manual_seed(random.Random(adapter_seed).getrandbits(63))
            adapted = get_peft_model(model, lora).eval()
    except ValueError as error:
        raise InputError(f"lora_targets {options.lora_targets!r}: {error}") from error
    if any(isinstance(m, ParamWrapper) for m in adapted.modules()):
        raise InputError(
            f"lora_targets must not name the experts or their router, but {options.lora_targets!r} "
            "does: they are no linear layers, and their adapters cannot be merged one by one. Name "
            "the modules of attention, such as q_proj,k_proj,v_proj,o_proj, or take lora_rank 0"
        )
    if any(isinstance(m, BaseTunerLayer) for m in model.get_output_embeddings().modules()):
        raise InputError(
            f"lora_targets must not name the head, but {options.lora_targets!r} does: samplers "
            "that load adapters leave it out. Name other modules, or take all-linear"
        )
    return adapted


def _checkpoint_layers(scorer: Scorer) -> None:
    """Let layers recompute their activations, and nothing else behave as in training.

    A layer recomputes only if it is in training mode itself; its parts stay in evaluation mode,
    without dropout, so that a ratio of 1 is 1.
    """
    again = partial(checkpoint, use_reentrant=False, preserve_rng_state=False)
    for layer in decoder_layers(scorer):
        layer.training = layer.gradient_checkpointing = True
        layer._gradient_checkpointing_func = again
