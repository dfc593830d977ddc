"""The Streamlit components of a conversation and of tokens; nothing comes from the network.

Text of a log goes to the browser as JSON, and there only into `textContent`: it cannot be markup.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

_CHAT = "chat"


def show_chat(drawn: Mapping[str, Any], *, on_step: Callable[[int], None]) -> None:
    """Show a conversation, scrolled to the step that is shown.

    Args:
        drawn: The result of `drawn_messages`.
        on_step: Called with the row of the step that was clicked.
    """
    _component(_CHAT, '<div class="tools"></div>')(
        key=_CHAT,
        data=dict(drawn),
        on_step_change=lambda: on_step(int(st.session_state[_CHAT]["step"])),
    )


def show_tokens(drawn: Mapping[str, Any]) -> None:
    """Show tokens as a text; `drawn` is the result of `drawn_tokens`."""
    _component("tokens", "")(key="tokens", data=dict(drawn))


@cache
def _component(name: str, above: str) -> Callable[..., Any]:
    return component(
        f"graphcredit_{name}",
        html=f'{above}<div class="{name}"></div>',
        css=_asset(f"{name}.css"),
        js=_asset(f"{name}.js"),
    )


def _asset(name: str) -> str:
    path = files("graphcredit.viewer.chat") / "component" / "assets" / name
    return path.read_text(encoding="utf-8")
