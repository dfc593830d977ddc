"""Lines that a window wraps: which breaks say nothing, and which do."""

import itertools
import random
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.credit.iteration.assemble import assemble
from graphcredit.credit.merging.merger import open_merger
from graphcredit.credit.merging.segments.text.wrapped import (
    SoftBreaks,
    around_break,
    soft_breaks,
    words_of,
)
from graphcredit.credit.merging.table import MergeSettings
from tests.credit.idle_worlds import ROOMS, Ring, World, rows_of
from tests.worlds import step_table

WIDE = "you see a very small and rusty key on the table"


def learned(*texts: str) -> SoftBreaks:
    """Return the breaks of some texts that say nothing."""
    lines = [text.splitlines() for text in texts]
    breaks = [
        around_break(words_of(one), words_of(other))
        for own in lines
        for one, other in itertools.pairwise(own)
    ]
    return soft_breaks(breaks, [words_of(line) for own in lines for line in own])


def test_a_break_at_which_another_text_goes_on_is_left_out():
    narrow = "you see a very small\n  and rusty key on the table\nit is dark"
    breaks = learned(WIDE, narrow)
    assert breaks == SoftBreaks(between=frozenset({("very", "small", "and")}))
    assert breaks.joined(narrow) == f"{WIDE}\nit is dark"


def test_a_word_that_was_cut_in_two_is_one_again():
    narrow = "you see a very sm\nall and rusty key on the table"
    breaks = learned(WIDE, narrow)
    assert breaks == SoftBreaks(inside=frozenset({("very", "sm", "all")}))
    assert breaks.joined(narrow) == WIDE


def test_a_break_that_all_texts_have_stays():
    text = "a hall\na door\na key"
    assert learned(text, "a hall\na key") == SoftBreaks()
    assert SoftBreaks().joined(text) == text


@given(st.lists(st.integers(12, 40), min_size=2, max_size=5))
def test_texts_wrapped_at_any_width_are_the_wide_one(widths: list[int]):
    texts = [textwrap.fill(WIDE, width, break_on_hyphens=False) for width in widths]
    breaks = learned(WIDE, *texts)
    assert [breaks.joined(text) for text in texts] == [WIDE] * len(texts)


def _window(wraps: bool) -> World:
    """A long sentence is wrapped at the width of the window, or the width is that of a room."""

    def world(rng: random.Random) -> list[str]:
        def says(ring: Ring) -> list[str]:
            width = rng.choice((16, 24, 32)) if wraps else 16 + 8 * (ring.flags["door"] == "open")
            sentence = f"This {ROOMS[ring.room]} has a very small and rather rusty old door"
            return textwrap.wrap(sentence, width)

        def does(ring: Ring, action: str) -> None:
            if action in ("open", "shut"):
                ring.flags["door"] = action

        return Ring(rng, ("open", "shut"), flags={"door": "shut"}).rollout(says, does)

    return world


@pytest.mark.parametrize(("wraps", "num_states"), [(True, len(ROOMS)), (False, 2 * len(ROOMS))])
def test_lines_are_joined_if_one_state_was_seen_with_other_breaks(wraps: bool, num_states: int):
    table = step_table(rows_of(_window(wraps), 4))
    merger = open_merger(MergeSettings(merge="segments")).learn([table])
    assert len(set(assemble(table, merger=merger).batch.state_of_step.tolist())) == 4 * num_states
