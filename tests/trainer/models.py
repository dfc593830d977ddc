"""Tiny causal language models made on the spot: random weights, real architectures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE, WordLevel
from tokenizers.pre_tokenizers import ByteLevel, Whitespace
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


CHATML = (
    "{% if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""A template that only appends, as Qwen2.5's does."""

MARKED = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}"
    "{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}{{ '\n' }}{% else %}"
    "{{ m.content }}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""The same, with marks around answers."""


def chat_tokenizer(
    template: str | None, merges: Sequence[tuple[str, str]] = ()
) -> PreTrainedTokenizerFast:
    """Return a tokenizer of bytes, and of pairs of them that are merged, with a chat template."""
    letters = sorted(ByteLevel.alphabet())
    words = [*letters, *("".join(pair) for pair in merges)]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=list(merges)))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = ByteLevelDecoder()
    made = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|pad|>",
        additional_special_tokens=["<|im_start|>"],
    )
    made.chat_template = template
    return made


def save_chat_model(directory: Path, template: str | None = CHATML, **settings: Any) -> str:
    """Write a tiny model whose tokenizer has a chat template; return its path."""
    tokenizer = chat_tokenizer(template)
    sizes: dict[str, Any] = {"vocab_size": len(tokenizer), "max_position_embeddings": 1024}
    tiny_model(**sizes | settings).save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return str(directory)
