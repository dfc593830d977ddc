"""Help in plain lines: options in named groups, and nothing cut off on a narrow terminal."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

_FIRST_COLUMN = 30
"""Columns of an option's name; the help of a longer one begins on the next line."""


Command = TypeVar("Command", bound=Callable[..., None])


def explains(title: str, rows: Mapping[str, str]) -> Callable[[Command], Command]:
    """Return a decorator that adds a section to a command's help, after those of its options.

    Args:
        title: Of the section.
        rows: What stands in the first column, to its help.
    """

    def decorate(command: Command) -> Command:
        vars(command)["help_section"] = title, list(rows.items())
        return command

    return decorate


class ShownArgument(click.Argument):
    """An argument with a help of its own."""

    def __init__(self, *args: Any, shown: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._shown = shown

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Return the argument's name and its help."""
        return self.human_readable_name, self._shown


class OptionInGroup(click.Option):
    """An option that stands under a title, whose help may be found when it is shown."""

    def __init__(
        self, *args: Any, shown: str | Callable[[], str], group: str | None, **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self._shown, self.group = shown, group

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option's flags and its help."""
        self.help = self._shown if isinstance(self._shown, str) else self._shown()
        return super().get_help_record(ctx)


class PlainCommand(click.Command):
    """A command whose options stand under the titles of their groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each group of options; those of no group come first."""
        for title, records in sections_of(self, ctx).items():
            with formatter.section(title):
                formatter.write_dl(records, col_max=_FIRST_COLUMN)
        if section := getattr(self.callback, "help_section", None):
            title, rows = section
            with formatter.section(title):
                formatter.write_dl(rows, col_max=_FIRST_COLUMN)


def sections_of(command: click.Command, context: click.Context) -> dict[str, list[tuple[str, str]]]:
    """Return the title of each group of parameters, to their names and help."""
    sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    for parameter in command.get_params(context):
        if record := parameter.get_help_record(context):
            kind = "Arguments" if isinstance(parameter, click.Argument) else "Options"
            sections.setdefault(getattr(parameter, "group", None) or kind, []).append(record)
    return {title: records for title, records in sections.items() if records}
