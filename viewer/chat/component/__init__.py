"""The Streamlit component of a conversation; nothing comes from the network.

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
    """Show a conversation, scrolled to the step that is shown."""
    _component()(
        key=_CHAT,
        data=dict(drawn),
        on_step_change=lambda: on_step(int(st.session_state[_CHAT]["step"])),
    )


@cache
def _component() -> Callable[..., Any]:
    return component(
        "graphcredit_chat",
        html='<div class="tools"></div><div class="chat"></div>',
        css=_asset("chat.css"),
        js=_asset("chat.js"),
    )


def _asset(name: str) -> str:
    path = files("graphcredit.viewer.chat") / "component" / "assets" / name
    return path.read_text(encoding="utf-8")
