"""Counts in messages."""

import pytest

from graphcredit.store.plural import counted


@pytest.mark.parametrize(
    ("number", "noun", "expected"),
    [
        (0, "error", "0 errors"),
        (1, "file", "1 file"),
        (2, "file", "2 files"),
        (1, "trajectory", "1 trajectory"),
        (1000, "trajectory", "1,000 trajectories"),
        (2, "play", "2 plays"),
    ],
)
def test_the_noun_is_plural_unless_there_is_one(number: int, noun: str, expected: str) -> None:
    assert counted(number, noun) == expected
