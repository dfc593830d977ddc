"""Boxes and quoted lines: what is around a line is no part of it."""

import pytest

from graphcredit.credit.merging.segments.text.parse import parse


def shown(text: str) -> list[str]:
    """Return the segments of a text."""
    return [" ".join(part.tokens) for part in parse(text)]


@pytest.mark.parametrize("bar", ["|", "│", "┃", "║"])
def test_the_frame_of_a_box_is_no_part_of_its_lines(bar: str):
    assert shown(f"{bar} You see a key. It is red.   {bar}") == ["you see a key .", "it is red ."]


def test_a_quoted_line_has_sentences():
    assert len(shown("| You see a key. It is red.")) == 2


@pytest.mark.parametrize("line", ["| key | red. Old. |", "|  @ . # |", "| # ab @ |"])
def test_rows_of_tables_and_maps_keep_their_signs(line: str):
    assert len(shown(line)) == 1
    assert shown(line)[0].count("|") == line.count("|")
