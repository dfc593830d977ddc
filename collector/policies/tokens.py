"""Convert messages to token ids and back; this needs the tokenizer, but not the model."""

from collections.abc import Sequence, Set
from datetime import date
from functools import lru_cache
from typing import Any

from graphcredit.store.confined.templates import TemplateRefusedError, render_chat
from graphcredit.store.errors import InputError, library_errors

_TODAY = date(2024, 7, 26)
"""The date for chat templates that state the current day, so that prompts do not change from day to
day. It is the default date of Llama 3's templates."""


def load_tokenizer(path: str) -> Any:
    """Return the tokenizer of a model's directory."""
    from transformers import AutoTokenizer

    with library_errors(f"a model's directory must have a tokenizer: {path}"):
        return AutoTokenizer.from_pretrained(path, local_files_only=True, trust_remote_code=False)


@lru_cache(maxsize=4)
def cached_tokenizer(path: str, stamp: str) -> Any:
    """Return the tokenizer of a directory, loaded once while `stamp` stays the same."""
    del stamp
    return load_tokenizer(path)


def end_ids_of(tokenizer: Any, generation_ends: int | list[int] | None) -> frozenset[int]:
    """Return the tokens that end an answer.

    Args:
        tokenizer: The tokenizer, whose `eos_token_id` is one of them.
        generation_ends: `eos_token_id` of the model's generation_config.json.
    """
    listed = generation_ends if isinstance(generation_ends, list) else [generation_ends]
    return frozenset(i for i in (*listed, tokenizer.eos_token_id) if i is not None)


def encode_prompt(tokenizer: Any, messages: list[dict[str, str]]) -> tuple[int, ...]:
    """Return the token ids of a conversation, up to the start of the model's answer.

    The tokenizer's chat template is used if it has one. Otherwise the texts are joined by line
    breaks, and get the special tokens that the tokenizer adds itself.

    Raises:
        InputError: The chat template refuses the conversation, or the result has no token.
    """
    if tokenizer.chat_template is not None:
        ids = _encode_chat(tokenizer, messages)
    else:
        ids = tokenizer("\n".join(message["content"] for message in messages))["input_ids"]
    if not ids:
        raise InputError(
            f"a prompt must have tokens: the tokenizer of {tokenizer.name_or_path} makes none of "
            f"{messages[-1]['content'][:80]!r}"
        )
    return tuple(ids)


def _encode_chat(tokenizer: Any, messages: list[dict[str, str]]) -> list[int]:
    try:
        rendered = render_chat(
            tokenizer.get_chat_template(),
            messages,
            day=_TODAY,
            add_generation_prompt=True,
            **tokenizer.special_tokens_map,
        )
    except TemplateRefusedError as error:
        roles = " and ".join(message["role"] for message in messages)
        raise InputError(
            f"a chat template must accept messages of {roles}: that of {tokenizer.name_or_path} "
            f"says {str(error)!r}. If it accepts no system message, leave `system` out of the "
            "prompt template"
        ) from None
    return tokenizer(rendered.text, add_special_tokens=False)["input_ids"]


def encode_answer(tokenizer: Any, text: str) -> tuple[int, ...]:
    """Return the token ids of an answer and its end token, as if a model had sampled them."""
    if tokenizer.eos_token_id is None:
        raise InputError(
            f"a tokenizer must have an eos_token to end an answer: that of "
            f"{tokenizer.name_or_path} has none"
        )
    return (*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id)


def decode_answer(tokenizer: Any, ids: Sequence[int], end_ids: Set[int]) -> str:
    """Return the text of an answer without its end token, but with other special tokens."""
    kept = ids[:-1] if ids and ids[-1] in end_ids else ids
    return tokenizer.decode(
        list(kept), skip_special_tokens=False, clean_up_tokenization_spaces=False
    )
