"""Commands that are killed at random; `mixed_kills` and `resumed_kills` do it on demand, too.

By day each of them is killed at moments that are chosen: `grep -rl SIGKILL tests` finds where.
"""

import pytest

from tests import mixed_kills, resumed_kills

pytestmark = pytest.mark.nightly


def test_mixed_writers_killed_at_random_lose_and_double_nothing():
    counts = mixed_kills.kills(100)
    assert sum(number for what, number in counts.items() if what.endswith("killed")) >= 100


@pytest.mark.parametrize("name", resumed_kills.RESUMED)
def test_what_was_killed_at_random_ends_as_what_was_not(name: str):
    assert resumed_kills.kills(name, 50)["killed"] >= 50
