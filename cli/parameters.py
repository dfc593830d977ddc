"""Commands for click, made from functions: an annotation says how an argument or option is read."""

import inspect
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

import click

from graphcredit.cli.output.help import OptionInGroup, PlainCommand, ShownArgument

HELP_NAMES = {"help_option_names": ["-h", "--help"], "show_default": True}


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument, beside its type in `Annotated`; it is required if it has no default."""

    help: str


@dataclass(frozen=True, slots=True)
class Option:
    """An option, beside its type in `Annotated`."""

    names: str = ""
    """Its flags, as `--estimator, -e`; by default `--name`, and `--name/--no-name` of a switch."""
    _: KW_ONLY
    help: str | Callable[[], str]
    """What the help says, or a function that is asked only when it is shown."""
    min: int | None = None
    max: int | None = None
    metavar: str | None = None
    """What stands for its value in the help."""
    group: str | None = None
    """Title under which the help has it."""


QUIET = Option("--quiet", help="No progress and no notices on stderr, errors only.")


def command_of(function: Callable[..., None], name: str) -> PlainCommand:
    """Return a command that calls a function, with the option `--quiet` beside its own."""

    def run(*, quiet: bool, **values: Any) -> None:
        from graphcredit.cli.output.console import be_quiet

        be_quiet(is_quiet=quiet)
        function(**{key: [*v] if isinstance(v, tuple) else v for key, v in values.items()})

    run.__dict__.update(vars(function))
    parameters = [_parameter(each) for each in inspect.signature(function).parameters.values()]
    return PlainCommand(
        name,
        callback=run,
        params=[*parameters, _option("quiet", bool, QUIET, default=False)],
        help=inspect.getdoc(function),
        context_settings=HELP_NAMES,
    )


def _parameter(parameter: inspect.Parameter) -> click.Parameter:
    hint, how = get_args(parameter.annotation)
    if isinstance(how, Option):
        return _option(parameter.name, hint, how, default=parameter.default)
    kind, is_list = _read_as(hint)
    return ShownArgument(
        [parameter.name],
        type=_type(kind, how),
        nargs=-1 if is_list else 1,
        required=parameter.default is inspect.Parameter.empty,
        shown=how.help,
    )


def _option(name: str, hint: Any, how: Option, *, default: Any) -> OptionInGroup:
    kind, is_list = _read_as(hint)
    flag = name.replace("_", "-")
    usual = f"--{flag}/--no-{flag}" if kind is bool else f"--{flag}"
    # A default of None is one to click: an option that has it is never missing.
    given = {"required": True} if default is inspect.Parameter.empty else {"default": default}
    return OptionInGroup(
        [name, *(how.names or usual).split(", ")],
        type=_type(kind, how),
        is_flag=kind is bool,
        multiple=is_list,
        metavar=how.metavar,
        shown=how.help,
        group=how.group,
        **given,
    )


def _read_as(hint: Any) -> tuple[type[Any], bool]:
    """Return the type of a value, and whether there may be several."""
    kind = get_args(hint)[0] if isinstance(hint, UnionType) else hint
    return (get_args(kind)[0], True) if get_origin(kind) is list else (kind, False)


def _type(kind: type[Any], how: Argument | Option) -> Any:
    if isinstance(how, Option) and (how.min, how.max) != (None, None):
        return click.IntRange(how.min, how.max)
    return click.Path(path_type=Path) if kind is Path else kind
