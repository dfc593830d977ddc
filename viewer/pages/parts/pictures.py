"""The pictures in the prompt of a step; the browser decodes them, and nothing here does."""

import base64
from typing import Any

import streamlit as st

from graphcredit.store.errors import InputError
from graphcredit.store.images import image_bytes
from graphcredit.store.plural import counted
from graphcredit.viewer.queries import trajectory as queries
from graphcredit.viewer.widgets.cache import ask, viewed_store
from graphcredit.viewer.widgets.text import show_text

_SIGNS = ((b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpeg"), (b"GIF8", "gif"))
_LARGEST = 4 << 20
"""Bytes of a picture that is sent to the browser."""
_MOST = 12
_WIDTH = 240


def show_seen(*, trajectory_id: str, step_index: int, **where: Any) -> None:
    """Show the last pictures of a step, if it has any; what is none or too large is named."""
    logged = ask(queries.pictures, **where, trajectory_id=trajectory_id, step_index=step_index)
    if not logged:
        return
    st.caption(f"{counted(len(logged), 'picture')} in the prompt")
    root = viewed_store().root
    try:
        contents = [image_bytes(root, image, f"step {step_index}") for image in logged]
    except InputError as error:
        show_text(str(error))
        return
    # A prompt grows: what an agent has just seen comes last.
    before = max(len(contents) - _MOST, 0)
    if before:
        st.caption(f"{counted(before, 'earlier picture')}, not shown")
    with st.container(horizontal=True):
        for number, content in enumerate(contents[before:], before + 1):
            _show(content, f"picture {number}, {len(content) / 1024:,.1f} KiB")


def _show(content: bytes, about: str) -> None:
    kind = _kind(content)
    if not kind:
        st.caption(f"{about}: no PNG, JPEG, GIF or WebP")
    elif len(content) > _LARGEST:
        st.caption(f"{about}: too large to be shown")
    else:
        data = base64.b64encode(content).decode("ascii")
        # An address: of bytes, Streamlit would decode the picture here.
        st.image(f"data:image/{kind};base64,{data}", caption=about, alt=about, width=_WIDTH)


def _kind(content: bytes) -> str:
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "webp"
    return next((kind for sign, kind in _SIGNS if content.startswith(sign)), "")
