"""The tokens of a step on the Trajectory page, as text where the model's tokenizer is at hand."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import streamlit as st

from graphcredit.store.errors import InputError
from graphcredit.viewer.chat.component import show_tokens
from graphcredit.viewer.chat.texts import calls_of
from graphcredit.viewer.chat.tokenizer import (
    find_tokenizer,
    model_of,
    read_tokenizer,
    token_texts,
)
from graphcredit.viewer.chat.tokens import MOST_TOKENS, drawn_tokens
from graphcredit.viewer.widgets.cache import viewed_store
from graphcredit.viewer.widgets.text import show_box, show_text


def tokens_of_step(table: pa.Table, step: int) -> None:
    """Show what was sampled at a step, token by token, and the prompt before it.

    Args:
        table: The steps of the trajectory, with their credit.
        step: Row of the step.
    """
    ids = table["response_ids"][step].as_py()
    if not ids:
        st.caption(
            "No tokens were logged with these steps: policies that are language models log "
            "`response_ids` and `response_logprobs`."
        )
        return
    prompt = table["prompt_ids"][step].as_py() or []
    st.subheader("Tokens")
    words = f"{len(ids)} tokens were sampled after a prompt of {len(prompt)}"
    temperature = table["temperature"][step].as_py()
    words += "." if temperature is None else f", at temperature {temperature:g}."
    if len(ids) > MOST_TOKENS:
        words += f" The first {MOST_TOKENS:,} are shown."
    st.caption(words)
    shown = ids[:MOST_TOKENS]
    texts, before = _texts(table, step, shown, prompt)
    show_tokens(drawn_tokens(texts, shown, table["response_logprobs"][step].as_py()))
    if before is not None:
        with st.expander("The prompt before it"):
            show_box(before, key="prompt")


def _texts(
    table: pa.Table, step: int, ids: Sequence[int], prompt: Sequence[int]
) -> tuple[list[str], str | None]:
    """Return the text of each token, and of the prompt; numbers and None without a tokenizer."""
    numbers = [f"{token} " for token in ids]
    names = [table["policy_version"][step].as_py(), model_of(table["extra"][0].as_py())]
    path = find_tokenizer(viewed_store(), names)
    if path is None:
        st.caption(
            "Token ids are shown: the tokenizer of the log's model was not found on this machine. "
            "`graphcredit view --tokenizer DIR` names one."
        )
        return numbers, None
    try:
        tokenizer = read_tokenizer(path)
        texts, before = token_texts(tokenizer, ids), "".join(token_texts(tokenizer, prompt))
    except ImportError:
        st.caption("Token ids are shown: to decode them, `pip install tokenizers`.")
        return numbers, None
    except InputError as error:
        st.warning("Token ids are shown: they cannot be decoded.")
        show_text(str(error))
        return numbers, None
    show_text(f"Decoded with {_short(path)}.")
    _doubt(table, step, "".join(texts))
    return texts, before


def _doubt(table: pa.Table, step: int, text: str) -> None:
    """Say if the text is not that of the action: then it is likely another model's tokenizer."""
    action = table["action"][step].as_py() or ""
    is_text = table["is_action_valid"][step].as_py() and not calls_of(action)
    if is_text and "".join(action.split()).lower() not in "".join(text.split()).lower():
        st.warning("The decoded text lacks the step's action: is this the model's tokenizer?")


def _short(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
