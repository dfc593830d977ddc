"""Kills of commands at once: see `mixed_kills`, which kills as often as it is told."""

import pytest

from tests.examples import nightly
from tests.mixed_kills import kills


@pytest.mark.slow
@pytest.mark.parametrize("number", [6, nightly(100)])
def test_mixed_writers_killed_at_random_lose_and_double_nothing(number: int):
    counts = kills(number)
    assert sum(number for what, number in counts.items() if what.endswith("killed")) >= number
