"""A table in plain text, for what is printed or shown in a notebook."""

from collections.abc import Iterable, Sequence


def text_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return titles and rows in columns, two blanks apart; the last column has no padding."""
    lines = [titles, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(titles) - 1)]
    return "\n".join(
        "  ".join(
            [*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[-1]]
        )
        for line in lines
    )
