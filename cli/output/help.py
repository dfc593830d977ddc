"""Help in plain lines: options in named groups, and nothing cut off on a narrow terminal."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from typer.core import TyperCommand

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


def stands_alone(flag: str, number: int) -> Callable[[Command], Command]:
    """Return a decorator that gives a flag of a command this number where none follows it."""

    def decorate(command: Command) -> Command:
        vars(command)["bare_flag"] = flag, str(number)
        return command

    return decorate


class PlainCommand(TyperCommand):
    """A command whose options stand under the titles of their groups."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **{**settings, "rich_markup_mode": None})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, after giving the flag that stands alone its number."""
        flag, number = getattr(self.callback, "bare_flag", ("", ""))
        for at in reversed(range(len(args))):
            follows = args[at + 1] if at + 1 < len(args) else ""
            if args[at] == flag and not follows.lstrip("+-").isdecimal():
                args = [*args[: at + 1], number, *args[at + 1 :]]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each group of options; those of no group come first."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                is_argument = parameter.param_type_name == "argument"
                panel = getattr(parameter, "rich_help_panel", None)
                title = panel or ("Arguments" if is_argument else "Options")
                sections.setdefault(title, []).append(record)
        for title in sorted(sections, key=lambda each: each not in ("Arguments", "Options")):
            with formatter.section(title):
                formatter.write_dl(sections[title], col_max=_FIRST_COLUMN)
        if section := getattr(self.callback, "help_section", None):
            title, rows = section
            with formatter.section(title):
                formatter.write_dl(rows, col_max=_FIRST_COLUMN)
