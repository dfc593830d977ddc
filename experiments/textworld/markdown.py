"""Tables as Markdown."""

import polars as pl


def markdown(table: pl.DataFrame) -> str:
    """Return a table as Markdown; fractions have three digits."""
    lines = [table.columns, ["---"] * table.width]
    lines += [[_text(value) for value in row] for row in table.rows()]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
