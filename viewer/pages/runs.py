"""The Runs page: how each iteration went."""

import streamlit as st


def show() -> None:
    """Show the page."""
    st.header("Runs")
