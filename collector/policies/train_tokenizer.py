"""Train a tokenizer for a model that is made from scratch, on the text of an environment.

It is byte-level BPE with Qwen2's normaliser and pre-tokenizer: transformers 5 applies these to a
Qwen2 model whatever its files say, so only such a tokenizer gives the same ids after it was saved.
Any text can be encoded; unknown text takes a token per byte.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from transformers import Qwen2Tokenizer

from graphcredit.store import Store, read_steps
from graphcredit.store.files.atomic import atomic_directory

NUM_LETTERS = 257
"""Tokens of a tokenizer without words: one per byte, and the end token."""


_TOKENS = ("prompt_ids", "response_ids")


def train_tokenizer(directory: Path, texts: Iterable[str], *, num_tokens: int) -> int:
    """Train a tokenizer and save it, atomically, for `AutoTokenizer`.

    Returns:
        The number of tokens: fewer if the texts have too few words.
    """
    blank: Any = Qwen2Tokenizer()
    trained = blank.train_new_from_iterator(texts, vocab_size=num_tokens, show_progress=False)
    with atomic_directory(directory) as made:
        trained.save_pretrained(str(made))
    return len(trained)


def recorded_texts(store: Store, run_id: str, tokenizer: Path) -> Iterator[str]:
    """Yield each distinct prompt and answer of a run, as text."""
    words = Qwen2Tokenizer.from_pretrained(str(tokenizer))
    seen: set[tuple[int, ...]] = set()
    for table in read_steps(store, columns=_TOKENS, run_id=run_id):
        for ids in (tuple(ids) for name in _TOKENS for ids in table[name].to_pylist()):
            if ids not in seen:
                seen.add(ids)
                yield str(words.decode(ids, skip_special_tokens=True))
