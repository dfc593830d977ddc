"""The token ids of texts that follow each other."""

from collections.abc import Sequence
from typing import Any

from graphcredit.store.errors import InputError


def encode_parts(tokenizer: Any, texts: Sequence[str], name: str) -> list[list[int]]:
    """Return the token ids of texts that follow each other.

    Each is tokenised alone, as the sampler had the prompt before it sampled the answer. That must
    be a tokenisation of the whole, too.

    Raises:
        InputError: It is not: the tokenizer adds something to a text that it begins with.
    """
    each, (whole,) = _ids(tokenizer, texts), _ids(tokenizer, ["".join(texts)])
    joined = [token for ids in each for token in ids]
    if joined == whole or _decoded(tokenizer, joined) == _decoded(tokenizer, whole):
        return each
    return _cut(tokenizer, texts, name)


def _ids(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    # Without a warning that a text is longer than the model: the filters count such steps.
    return tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]


def _decoded(tokenizer: Any, ids: Sequence[int]) -> str:
    return tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)


def _cut(tokenizer: Any, texts: Sequence[str], name: str) -> list[list[int]]:
    """Return the token ids of a text, cut where the parts begin."""
    whole = "".join(texts)
    encoded = tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)
    ids, offsets = encoded["input_ids"], encoded["offset_mapping"]
    parts: list[list[int]] = []
    position = token = 0
    for text in texts:
        position, first = position + len(text), token
        while token < len(ids) and offsets[token][0] < position:
            token += 1
        if token > first and offsets[token - 1][1] > position:
            raise InputError(
                f"the tokenizer of {name} makes one token of the end of a prompt and the beginning "
                f"of its answer ({whole[offsets[token - 1][0] : position + 9]!r}), and other "
                "tokens of both apart: nobody knows what was sampled. Train on a log with token ids"
            )
        parts.append(ids[first:token])
    return parts
