"""Commands that are killed at random: see `mixed_kills` and `resumed_kills`, which kill on demand.

The slow suite kills a few times, the nightly one many.
"""

import pytest
from hypothesis import settings

from tests import mixed_kills, resumed_kills


@pytest.mark.slow
@pytest.mark.hypothesis
def test_mixed_writers_killed_at_random_lose_and_double_nothing():
    least = 2 * settings().max_examples
    counts = mixed_kills.kills(least)
    assert sum(number for what, number in counts.items() if what.endswith("killed")) >= least


@pytest.mark.slow
@pytest.mark.hypothesis
@pytest.mark.parametrize("name", resumed_kills.RESUMED)
def test_what_was_killed_at_random_ends_as_what_was_not(name: str):
    least = settings().max_examples // 6
    assert resumed_kills.kills(name, least)["killed"] >= least
