"""The number of examples that a property is tried on."""

from hypothesis import settings


def examples(number: int) -> int:
    """Return the share of `number` that the profile of this run asks for: fast tries an eighth.

    Args:
        number: How many examples the profile `thorough` tries.
    """
    return max(1, number * settings().max_examples // 100)
