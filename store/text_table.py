"""Tables in plain text, and reports that are a line, a text or a table of a notebook."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from html import escape
from typing import Any, TypeAlias

Rows: TypeAlias = Iterable[Sequence[str]]


def text_table(titles: Sequence[str], rows: Rows) -> str:
    """Return titles and rows in columns, two blanks apart; the last column has no padding."""
    lines = [titles, *rows] if any(titles) else [*rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(titles) - 1)]
    return "\n".join(
        "  ".join(
            [*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[-1]]
        )
        for line in lines
    )


class Report:
    """A dataclass that a terminal shows as one line, `print` in full, and a notebook as a table."""

    __slots__ = ()

    def headline(self) -> str:
        """Return the report in one line."""
        raise NotImplementedError

    def table(self) -> tuple[Sequence[str], Rows]:
        """Return titles and rows; by default a row for each field that is not empty."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # pyright: ignore[reportArgumentType]
        rows = [(_title(name), _cell(value)) for name, value in values.items()]
        return ("", ""), [row for row in rows if row[1]]

    def __repr__(self) -> str:
        return self.headline()

    def __str__(self) -> str:
        titles, rows = self.table()
        return f"{self.headline()}\n\n{text_table(titles, rows)}"

    def _repr_html_(self) -> str:
        """Return a table for a notebook; text of the log is escaped."""
        titles, rows = self.table()
        head = _row("th", titles) if any(titles) else ""
        body = "".join(_row("td", row) for row in rows)
        return f"<p>{escape(self.headline())}</p><table>{head}{body}</table>"


def _title(name: str) -> str:
    return name.removeprefix("num_").replace("_", " ")


def _cell(value: Any) -> str:
    """Return a value as text; nothing of zeros, and of what is only for programs."""
    if isinstance(value, Mapping):
        told = {key: _cell(each) for key, each in value.items()}
        return "; ".join(f"{key}: {text}" for key, text in told.items() if text)
    if isinstance(value, list | tuple):
        return "; ".join(filter(None, map(_cell, value)))
    if isinstance(value, int | float):
        return f"{value:,}" if value else ""
    return str(value) if type(value).__str__ is not object.__str__ else ""


def _row(tag: str, cells: Sequence[str]) -> str:
    style = ' style="text-align:left"'
    return f"<tr>{''.join(f'<{tag}{style}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
