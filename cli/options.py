"""Flags of commands: those that several have, and those made from the options of a stage."""

import inspect
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar, get_args, get_origin

from graphcredit.cli.parameters import Argument, Option

StorePath: TypeAlias = Annotated[Path, Argument("The store.")]
Run: TypeAlias = Annotated[str | None, Option(help="Only this run.")]
Iteration: TypeAlias = Annotated[int | None, Option(min=0, help="Only this iteration.")]
AsJson: TypeAlias = Annotated[bool, Option("--json", help="Print the report as JSON.")]

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from graphcredit.store.options import Options

Command = TypeVar("Command", bound=Callable[..., None])
Panels: TypeAlias = "Mapping[str, type[Options]]"
"""Title of each group in the help, to the options that stand there."""


def takes(
    panels: Panels,
    *,
    omit: Collection[str] = (),
    names: Mapping[str, str] | None = None,
    from_file: bool = False,
) -> Callable[[Command], Command]:
    """Return a decorator that gives a command a flag for each option.

    The command takes them as `**flags`: only those that were given, so that the options keep their
    defaults, and a configuration file its values. Ranges and choices are for the options to check.

    Args:
        panels: Where each flag stands in the help. A field of several groups stands in the first.
        omit: Fields that are no flags of their own.
        names: Field to the names of its flag, where that is not `--field-name`.
        from_file: Whether a file may have the options, so that no flag is required.
    """
    named = names or {}

    def decorate(command: Command) -> Command:
        named_parameters = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in inspect.signature(command).parameters.values()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        flags: dict[str, inspect.Parameter] = {}
        for panel, options in panels.items():
            for name, field in options.model_fields.items():
                if name not in omit:
                    is_switch = field.annotation is bool and not from_file
                    given = named.get(name, _switch(name, field) if is_switch else "")
                    flag = _flag(options, name, panel, given)
                    flags.setdefault(name, flag.replace(default=None) if from_file else flag)
        parameters = [*named_parameters, *flags.values()]
        command.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
        command.__annotations__ = {each.name: each.annotation for each in parameters}
        return command

    return decorate


def _flag(options: "type[Options]", name: str, panel: str, names: str) -> inspect.Parameter:
    field = options.model_fields[name]
    kind = _read_as(field.annotation)
    option = Option(names, help=partial(_help, options, name), group=panel)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if field.is_required() else None,
        annotation=Annotated[kind | None, option],
    )


def _switch(name: str, field: "FieldInfo") -> str:
    """Return the flag that changes an option which is on or off: what it is already needs none."""
    flag = name.replace("_", "-")
    return f" /--no-{flag}" if field.default else f"--{flag}"


def _read_as(hint: Any) -> Any:
    """Return the type that the command line reads a flag as."""
    kinds = {get_origin(kind) or kind for kind in (hint, *_members(hint))}
    if tuple in kinds:
        return list[str]
    return next((kind for kind in (bool, int, float, Path) if kind in kinds), str)


def _members(hint: Any) -> tuple[Any, ...]:
    """Return the members of a union, without their constraints."""
    if get_origin(hint) is Annotated:
        return (get_args(hint)[0],)
    return tuple(inner for member in get_args(hint) for inner in (member, *_members(member)))


def _help(options: "type[Options]", name: str) -> str:
    """Return the help of a field with its choices and its default, as click writes them."""
    from graphcredit.store.options import help_texts

    field = options.model_fields[name]
    text = help_texts(options)[name]
    if _read_as(field.annotation) == list[str]:
        text += " May be repeated."
    hints = (field.annotation, *_members(field.annotation))
    choices = next((get_args(hint) for hint in hints if get_origin(hint) is Literal), ())
    if len(choices) > 1:
        text += f" One of {', '.join(map(str, choices))}."
    default = field.default
    if isinstance(default, bool):
        flag = name.replace("_", "-")
        default = flag if default else f"no-{flag}"
    if isinstance(default, tuple):
        default = ", ".join(map(str, default))
    is_shown = not field.is_required() and default not in (None, "")
    return f"{text}  [default: {default}]" if is_shown else text


def given(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags that were given; those that may be repeated are lists, empty if not."""
    return {name: value for name, value in flags.items() if value is not None and value != []}
