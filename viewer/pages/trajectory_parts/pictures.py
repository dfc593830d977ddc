"""The pictures in the prompt of a step, on the Trajectory page."""

from typing import Any

import streamlit as st

from graphcredit.store.errors import InputError
from graphcredit.store.images import image_bytes
from graphcredit.store.plural import counted
from graphcredit.viewer.queries import trajectory as queries
from graphcredit.viewer.widgets.cache import ask, viewed_store
from graphcredit.viewer.widgets.pictures import show_pictures
from graphcredit.viewer.widgets.text import show_text


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
        found = [image_bytes(root, image, f"step {step_index}") for image in logged]
    except InputError as error:
        show_text(str(error))
        return
    show_pictures(found, key=f"{trajectory_id}_{step_index}")
