"""Counts in messages: `1 file`, `2 files`, `1,000 trajectories`."""


def counted(number: int, noun: str) -> str:
    """Return a number with a noun, in the plural unless the number is 1.

    Args:
        number: The number; it is written with thousands separators.
        noun: The noun in the singular. A final `y` after a consonant becomes `ies`.
    """
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{number:,} {noun[:-1]}ies"
    return f"{number:,} {noun}s"
