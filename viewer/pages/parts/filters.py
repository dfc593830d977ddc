"""The filters that the lists of tasks and of trajectories share, on the Tasks page."""

from dataclasses import dataclass

import streamlit as st

from graphcredit.viewer.widgets.note_words import NoteRows
from graphcredit.viewer.widgets.notes import all_tags
from graphcredit.viewer.widgets.text import one_line


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What a row must have; None for any."""

    shortest: int | None = None
    """Least number of steps."""
    longest: int | None = None
    """Greatest number of steps."""
    disagreement: float | None = None
    """Least share of steps at which estimators disagree."""
    tag: str | None = None
    """A tag of the trajectory or of one of its steps."""


def choose_limits(notes: NoteRows, *, has_disagreement: bool) -> Limits:
    """Show the boxes of limits, which are in the address.

    Args:
        notes: The notes of the iteration, for their tags.
        has_disagreement: Whether several estimators have credit.
    """
    with st.container(horizontal=True):
        shortest = _number("Steps from", "shortest", 1)
        longest = _number("Steps to", "longest", 1)
        percent = _number("Disagree at least, %", "disagree", 0) if has_disagreement else None
        tags = all_tags(notes)
        tag = (
            st.selectbox(
                "Tag",
                tags,
                index=None,
                key="tag",
                bind="query-params",
                format_func=one_line,
                placeholder="any",
            )
            if tags
            else None
        )
    return Limits(
        shortest=shortest,
        longest=longest,
        disagreement=None if percent is None else percent / 100,
        tag=tag,
    )


def tagged(notes: NoteRows, tag: str, name: str) -> tuple[str, ...]:
    """Return the names with a tag, each once, sorted.

    Args:
        notes: The notes of the iteration.
        tag: The tag.
        name: `task_id` or `trajectory_id`.
    """
    return tuple(sorted({row[name] for row in notes if tag in (row["tags"] or ())}))


def _number(title: str, key: str, least: int) -> int | None:
    return st.number_input(
        title, least, None, None, 1, key=key, bind="query-params", placeholder="any", width=170
    )
