"""Tiny language models that play: random weights, and a tokenizer of an environment's words."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from transformers import Qwen2Tokenizer

from tests.trainer.models import tiny_model

CHAT_TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|endoftext|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
"""Shaped as real ones are: roles, ends of turns, and the model's turn."""


def save_talker(
    directory: Path,
    texts: Iterable[str] = ("search[France] lookup[capital] answer[Paris] Page: none",),
    *,
    seed: int = 0,
    chat_template: str | None = None,
    **settings: Any,
) -> str:
    """Write a tiny model and a tokenizer of the same size; return the directory's path.

    Args:
        directory: Where they are written.
        texts: What the tokenizer learns its words from; it can say anything, byte by byte.
        seed: Of the model's weights.
        chat_template: How the tokenizer marks turns; None for one that was never taught to chat.
        settings: Configuration fields that differ from the tiny shape.
    """
    blank: Any = Qwen2Tokenizer()
    tokenizer = blank.train_new_from_iterator(texts, vocab_size=300, show_progress=False)
    tokenizer.chat_template = chat_template
    tokenizer.save_pretrained(directory)
    shape = {
        "vocab_size": len(tokenizer),
        "hidden_size": 64,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "max_position_embeddings": 2048,
        "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": None,
        "pad_token_id": tokenizer.pad_token_id,
    }
    tiny_model("qwen2", seed=seed, **{**shape, **settings}).save_pretrained(directory)
    return str(directory)
