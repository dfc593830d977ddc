"""How much of a test a suite runs."""

import pytest
from _pytest.mark.structures import ParameterSet
from hypothesis import settings


def examples(number: int) -> int:
    """Return the share of `number` that the profile of this run asks for: fast tries an eighth.

    Args:
        number: How many examples the profile `thorough` tries.
    """
    return max(1, number * settings().max_examples // 100)


def nightly(*values: object) -> ParameterSet:
    """Return a case of a test that runs at night alone."""
    return pytest.param(*values, marks=pytest.mark.nightly)
