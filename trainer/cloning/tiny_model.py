"""A tiny causal LM with random weights: Qwen2's architecture, some hundred thousand weights."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, Qwen2Config, Qwen2ForCausalLM
from transformers.utils.logging import disable_progress_bar

from graphcredit.trainer.model.export import distinct, save_model

MAX_LENGTH = 1024
"""Tokens of a prompt and its response, at most."""

_SHAPE: dict[str, Any] = {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 3,
    # A head size of 32, the smallest that vLLM's attention supports on a CPU.
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": MAX_LENGTH,
    # When tied weights are loaded again, vLLM on a CPU keeps the old head.
    "tie_word_embeddings": False,
}


def save_random_model(directory: Path, tokenizer: Path, *, seed: int) -> int:
    """Write a model and its tokenizer as a Hugging Face directory, whole or not at all.

    It embeds exactly the tokenizer's tokens, so it cannot sample an unknown id.

    Returns:
        The number of weights.
    """
    disable_progress_bar()
    words = AutoTokenizer.from_pretrained(tokenizer, local_files_only=True)
    config = Qwen2Config(
        vocab_size=len(words),
        bos_token_id=None,
        eos_token_id=words.eos_token_id,
        pad_token_id=words.pad_token_id,
        **_SHAPE,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model: Any = Qwen2ForCausalLM(config)
    weights = distinct(model, model.state_dict(keep_vars=True))
    save_model(directory, model, weights, tokenizer)
    return model.num_parameters()
