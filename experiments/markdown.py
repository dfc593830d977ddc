"""Numbers and tables of the reports, as Markdown."""

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from experiments.means import Mean


def sections(texts: Mapping[str, str]) -> str:
    """Return titles and texts as sections."""
    return "\n".join(f"## {title}\n\n{text}" for title, text in texts.items())


def table(titles: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    every = [titles, ["---"] * len(titles), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in every) + "\n"


def frame(rows: pl.DataFrame) -> str:
    """Return a data frame as a Markdown table; fractions have three digits."""
    return table(rows.columns, [[_text(value) for value in row] for row in rows.rows()])


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def names(key: Sequence[object]) -> list[str]:
    """Return the name of a credit and its lists; estimators are in code."""
    credit, lists = key
    return [str(credit) if str(credit).startswith("true") else f"`{credit}`", str(lists)]


def interval(average: Mean, digits: int = 2) -> str:
    """Return a mean and its 95 % interval."""
    low, high = (number(value, digits) for value in (average.low, average.high))
    return f"{number(average.value, digits)} ({low} to {high})"


def half_interval(average: Mean) -> str:
    """Return a mean, and half of its 95 % interval."""
    return f"{number(average.value)} ± {(average.high - average.low) / 2:.2f}"


def ranged(average: Mean, digits: int = 2) -> str:
    """Return the mean of a difference and its 95 % interval, with signs."""
    values = (average.value, average.low, average.high)
    mean, low, high = (f"{value:+.{digits}f}" for value in values)
    return f"{mean} ({low} to {high})"


def number(value: float, digits: int = 2) -> str:
    """Return a number with some decimals; zero has no sign."""
    return f"{round(value, digits) + 0.0:.{digits}f}"
