"""How the pages behave in a browser, where Streamlit has no option: rows, keys and the way back."""

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

FOLDED = "folded"
"""Prefix of the keys of containers that fold in a narrow window."""


def mind_manners() -> None:
    """Add the style and the script; called once in every script run."""
    st.html(f"<style>{_asset('manners.css')}</style>")
    _script()(key="manners", data={}, height=1)


@cache
def _script() -> Callable[..., Any]:
    return component("graphcredit_manners", js=_asset("manners.js"))


def _asset(name: str) -> str:
    return (files("graphcredit.viewer.manners") / name).read_text(encoding="utf-8")
