"""Kills of commands at once: see `mixed_kills`, which kills as often as it is told."""

import pytest

from tests.mixed_kills import kills


@pytest.mark.slow
def test_mixed_writers_killed_at_random_lose_and_double_nothing():
    counts = kills(20)
    assert sum(number for what, number in counts.items() if what.endswith("killed")) >= 20
