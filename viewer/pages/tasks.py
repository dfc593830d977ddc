"""The Tasks page: the groups of an iteration."""

import streamlit as st


def show() -> None:
    """Show the page."""
    st.header("Tasks")
