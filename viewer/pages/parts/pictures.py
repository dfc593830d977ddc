"""The pictures in the prompt of a step; the browser decodes them, and nothing here does."""

import base64
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

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

_STYLE = """
div { display: flex; flex-wrap: wrap; gap: 8px; }
figure { margin: 0; max-width: 100%; }
img { max-width: 100%; max-height: 320px; border-radius: 6px; display: block; }
figcaption { font-size: 12.8px; color: var(--st-text-color, #212529); }
"""

_SCRIPT = """
export default function ({ data, parentElement }) {
  parentElement.querySelector("div").replaceChildren(
    ...data.pictures.map(({ source, about }) => {
      const figure = document.createElement("figure");
      const words = document.createElement("figcaption");
      words.textContent = about;
      if (source) {
        const picture = document.createElement("img");
        picture.src = source;
        picture.alt = about;
        figure.append(picture);
      }
      figure.append(words);
      return figure;
    }),
  );
}
"""


def show_seen(*, trajectory_id: str, step_index: int, **where: Any) -> None:
    """Show the pictures of a step, if it has any.

    Args:
        trajectory_id: Its trajectory.
        step_index: Its number there.
        where: Run and iteration.
    """
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
    show_pictures(contents, key=f"{trajectory_id}_{step_index}")


def show_pictures(pictures: Sequence[bytes], *, key: str) -> None:
    """Show the last pictures in their order; one that is no picture or too large is named.

    A prompt grows: what an agent has just seen comes last.

    Args:
        pictures: Contents of files.
        key: Tells them from others of the page.
    """
    before = max(len(pictures) - _MOST, 0)
    drawn = [
        _drawn(content, number) for number, content in enumerate(pictures, 1) if number > before
    ]
    if before:
        drawn.insert(0, {"about": f"{counted(before, 'earlier picture')}, not shown"})
    _pictures()(key=f"pictures_{key}", data={"pictures": drawn})


def _drawn(content: bytes, number: int) -> dict[str, str]:
    about = f"picture {number}, {len(content) / 1024:,.1f} KiB"
    kind = _kind(content)
    if not kind:
        return {"about": f"{about}: no PNG, JPEG, GIF or WebP"}
    if len(content) > _LARGEST:
        return {"about": f"{about}: too large to be shown"}
    data = base64.b64encode(content).decode("ascii")
    return {"source": f"data:image/{kind};base64,{data}", "about": about}


def _kind(content: bytes) -> str:
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "webp"
    return next((kind for sign, kind in _SIGNS if content.startswith(sign)), "")


@cache
def _pictures() -> Callable[..., Any]:
    return component("graphcredit_pictures", html="<div></div>", css=_STYLE, js=_SCRIPT)
