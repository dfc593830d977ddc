"""A tokenizer for a model that is made from nothing, trained on what an environment says.

It is byte-level BPE, cut into words the way Qwen2's tokenizer does it: transformers 5 opens the
tokenizer of a Qwen2 model with that normaliser and those words whatever its files say, so only such
a tokenizer has the same ids after it was saved. Any text can be encoded; what was never seen takes
a token per byte.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from transformers import Qwen2Tokenizer

from graphcredit.store import Store, read_steps
from graphcredit.store.files.atomic import atomic_directory

NUM_LETTERS = 257
"""Tokens of a tokenizer that knows no words: each byte, and the one that ends an answer."""


_TOKENS = ("prompt_ids", "response_ids")


def train_tokenizer(directory: Path, texts: Iterable[str], *, num_tokens: int) -> int:
    """Write a tokenizer as `AutoTokenizer` opens it; the directory appears whole or not at all.

    Args:
        directory: Where; replaced if it is there.
        texts: What to learn words from; the same text twice counts twice.
        num_tokens: How many tokens it may have, at least `NUM_LETTERS`.

    Returns:
        How many it has: fewer where the texts have too few words.
    """
    blank: Any = Qwen2Tokenizer()
    trained = blank.train_new_from_iterator(texts, vocab_size=num_tokens, show_progress=False)
    with atomic_directory(directory) as made:
        trained.save_pretrained(str(made))
    return len(trained)


def recorded_texts(store: Store, run_id: str, tokenizer: Path) -> Iterator[str]:
    """Yield each different prompt and each different answer of a run, as text.

    Args:
        store: Its steps have token ids.
        run_id: The run.
        tokenizer: The tokenizer they were recorded with.
    """
    words = Qwen2Tokenizer.from_pretrained(str(tokenizer))
    seen: set[tuple[int, ...]] = set()
    for table in read_steps(store, columns=_TOKENS, run_id=run_id):
        for ids in (tuple(ids) for name in _TOKENS for ids in table[name].to_pylist()):
            if ids not in seen:
                seen.add(ids)
                yield str(words.decode(ids, skip_special_tokens=True))
