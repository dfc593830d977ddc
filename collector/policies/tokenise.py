"""Messages to token ids and back, with nothing but the tokenizer."""

from collections.abc import Sequence, Set
from functools import lru_cache
from typing import Any

from graphcredit.store.errors import InputError


def load_tokenizer(path: str) -> Any:
    """Return the tokenizer of a model's directory.

    Raises:
        InputError: There is none.
    """
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(path, local_files_only=True)
    except (OSError, ValueError) as error:
        raise InputError(f"a model's directory must have a tokenizer: {path}: {error}") from None


@lru_cache(maxsize=4)
def cached_tokenizer(path: str, stamp: str) -> Any:
    """Return the tokenizer of a directory, loaded once while `stamp` stays the same."""
    del stamp
    return load_tokenizer(path)


def end_ids_of(tokenizer: Any, generation_ends: int | list[int] | None) -> frozenset[int]:
    """Return the tokens that end an answer.

    Args:
        tokenizer: Its own is one of them.
        generation_ends: `eos_token_id` of the model's generation_config.json.
    """
    listed = generation_ends if isinstance(generation_ends, list) else [generation_ends]
    return frozenset(i for i in (*listed, tokenizer.eos_token_id) if i is not None)


def encode_prompt(tokenizer: Any, messages: list[dict[str, str]]) -> tuple[int, ...]:
    """Return the ids of a conversation after which it is the model's turn.

    The tokenizer's chat template is used where it has one; otherwise the texts are joined by line
    breaks, with the special tokens that the tokenizer itself adds.

    Raises:
        InputError: The tokenizer knows none of it.
    """
    if tokenizer.chat_template is not None:
        ids = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=True, return_dict=False
        )
    else:
        ids = tokenizer("\n".join(message["content"] for message in messages))["input_ids"]
    if not ids:
        raise InputError(
            f"a prompt must have tokens: the tokenizer of {tokenizer.name_or_path} makes none of "
            f"{messages[-1]['content'][:80]!r}"
        )
    return tuple(ids)


def encode_answer(tokenizer: Any, text: str) -> tuple[int, ...]:
    """Return the ids of an answer and its end, as a model would have sampled them.

    Raises:
        InputError: The tokenizer has no token that ends a text.
    """
    if tokenizer.eos_token_id is None:
        raise InputError(
            f"a tokenizer must have an eos_token to end an answer: that of "
            f"{tokenizer.name_or_path} has none"
        )
    return (*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id)


def decode_answer(tokenizer: Any, ids: Sequence[int], end_ids: Set[int]) -> str:
    """Return what an answer says, every token but the one that ended it, special ones included."""
    kept = ids[:-1] if ids and ids[-1] in end_ids else ids
    return tokenizer.decode(
        list(kept), skip_special_tokens=False, clean_up_tokenization_spaces=False
    )
