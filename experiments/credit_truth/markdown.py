"""Numbers and tables of the reports, as Markdown."""

from collections.abc import Iterable, Sequence

from experiments.credit_quality.averages import Mean


def names(key: Sequence[object]) -> list[str]:
    """Return the name of a credit and its lists; estimators are in code."""
    credit, lists = key
    return [str(credit) if str(credit).startswith("true") else f"`{credit}`", str(lists)]


def interval(found: Mean, digits: int = 2) -> str:
    """Return a mean and its 95 % interval."""
    low, high = (number(value, digits) for value in (found.low, found.high))
    return f"{number(found.value, digits)} ({low} to {high})"


def ranged(found: Mean, digits: int = 2) -> str:
    """Return the mean of a difference and its 95 % interval, with signs."""
    mean, low, high = (f"{value:+.{digits}f}" for value in (found.value, found.low, found.high))
    return f"{mean} ({low} to {high})"


def number(value: float, digits: int = 2) -> str:
    """Return a number with some decimals; zero has no sign."""
    return f"{round(value, digits) + 0.0:.{digits}f}"


def table(titles: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    every = [titles, ["---"] * len(titles), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in every) + "\n"
