"""Commands that are killed at random; `mixed_kills` and `resumed_kills` do it on demand, too."""

import pytest

from tests import mixed_kills, resumed_kills
from tests.examples import nightly


@pytest.mark.slow
@pytest.mark.parametrize("number", [4, nightly(100)])
def test_mixed_writers_killed_at_random_lose_and_double_nothing(number: int):
    counts = mixed_kills.kills(number)
    assert sum(number for what, number in counts.items() if what.endswith("killed")) >= number


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "number"),
    [("train", 2), nightly("train", 50), nightly("train, shared", 50), nightly("loop", 50)],
)
def test_what_was_killed_at_random_ends_as_what_was_not(name: str, number: int):
    assert resumed_kills.kills(name, number)["killed"] >= number
