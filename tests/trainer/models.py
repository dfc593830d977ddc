"""Tiny causal language models made on the spot: random weights, real architectures."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
from transformers.models.auto.configuration_auto import AutoConfig

NUM_TOKENS = 97

_SHAPE: dict[str, Any] = {
    "vocab_size": NUM_TOKENS,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 256,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "initializer_range": 0.2,
}
"""Wide weights, so that a wrong position, mask or scale moves a log-probability by far more than
rounding does."""


def tiny_model(kind: str = "qwen2", *, seed: int = 0, **settings: Any) -> Any:
    """Return a model of an architecture that transformers knows, in fp32, its weights random.

    Args:
        kind: `model_type` of transformers: qwen2, llama, mistral, gemma2, granite, …
        seed: Of the weights.
        settings: Configuration fields that differ from the tiny shape.
    """
    config = AutoConfig.for_model(kind, **{**_SHAPE, **settings})
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


def tiny_tokenizer(num_tokens: int = NUM_TOKENS - 5) -> PreTrainedTokenizerFast:
    """Return a tokenizer of the words `w3` … whose ids are their numbers.

    It leaves rows of the embedding unused, as real ones do.
    """
    words = {"<pad>": 0, "<bos>": 1, "<eos>": 2, **{f"w{i}": i for i in range(3, num_tokens)}}
    tokenizer = Tokenizer(WordLevel(words, unk_token="<pad>"))
    tokenizer.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<bos>", eos_token="<eos>"
    )


def save_tiny_model(directory: Path, kind: str = "qwen2", *, seed: int = 0, **settings: Any) -> str:
    """Write a tiny model and its tokenizer as a Hugging Face directory; return its path."""
    tiny_model(kind, seed=seed, **settings).save_pretrained(directory)
    tiny_tokenizer().save_pretrained(directory)
    return str(directory)
