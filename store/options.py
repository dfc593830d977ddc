"""Options: each is written once, as a typed field, then checked strictly and refused by name.

The docstring under a field is its help text: of the flag on the command line, of the key in a TOML
file and of the argument in Python.
"""

import ast
import dataclasses
import functools
import inspect
import itertools
import re
import textwrap
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeAlias, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import ErrorDetails

from graphcredit.store.errors import OptionError, system_errors
from graphcredit.store.files.parse import parse_toml
from graphcredit.store.near_names import did_you_mean

Count: TypeAlias = Annotated[int, Field(ge=0)]
AtLeastOne: TypeAlias = Annotated[int, Field(ge=1)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Percent: TypeAlias = Annotated[float, Field(ge=0, le=100)]
Discount: TypeAlias = Share
PositiveDiscount: TypeAlias = Annotated[float, Field(gt=0, le=1)]
Weight: TypeAlias = Annotated[float, Field(ge=0)]
Positive: TypeAlias = Annotated[float, Field(gt=0)]
PathOption: TypeAlias = Annotated[Path, Field(strict=False)]
"""A path; text stands for one."""
Texts: TypeAlias = Annotated[tuple[str, ...], Field(strict=False)]
"""Texts; a list stands for a tuple."""

_RULES: Mapping[str, str] = {
    "greater_than_equal": "at least {ge:g}",
    "greater_than": "above {gt:g}",
    "less_than_equal": "at most {le:g}",
    "less_than": "below {lt:g}",
    "finite_number": "a finite number",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "text",
    "path": "a path",
    "tuple": "a list of texts",
    "dict": "a table",
    "mapping": "a table",
    "model": "a table",
    "literal_error": "{expected}",
    "none_required": "left out",
    "value_error": "{error}",
    "assertion_error": "{error}",
}
"""Pydantic's name of an error, or its first word, to what must hold."""


class Options(BaseModel):
    """Options of one thing. Values are not converted, but for text that stands for a path."""

    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", allow_inf_nan=False, protected_namespaces=()
    )

    owner: ClassVar[str]
    """Their command or stage, for messages: `train`, `collect`."""

    def __init__(self, **values: Any) -> None:
        """Check the values.

        Raises:
            OptionError: A name is unknown, one is missing, or a value is not of its type or range.
        """
        with _refusals(self.owner, type(self).model_fields):
            super().__init__(**values)

    def changed(self, **values: Any) -> Self:
        """Return the options with other values, which are checked."""
        return type(self)(**{**dict(self), **values})


def options_from_text(options: type[Any], settings: Mapping[str, str], *, owner: str) -> Any:
    """Build options from `{"gamma": "0.9", …}`.

    Args:
        options: A dataclass of options, or a class of `Options`.
        settings: Option to its value as text; the others keep their defaults.
        owner: Name of the estimator or objective, for messages.

    Raises:
        OptionError: An option is unknown, unreadable or out of its range.
    """
    names = _names(options)
    if unknown := sorted(settings.keys() - set(names)):
        raise OptionError(_unknown(owner, unknown[0], [f"{owner}.{name}" for name in names]))
    with _refusals(owner, names):
        read = _model_of(options).model_validate_strings(dict(settings), strict=False)
    return options(**{name: getattr(read, name) for name in settings})


def check_options(options: Any, *, owner: str) -> None:
    """Raise OptionError if a value of a dataclass is not of its field's type or range."""
    values = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
    with _refusals(owner, values):
        _model_of(type(options)).model_validate(values)


def options_as_json(options: Any) -> dict[str, Any]:
    """Return the effective options of a dataclass, for the metadata of the columns they made."""
    return dataclasses.asdict(options)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class DescribedOption:
    """An option of an estimator or an objective, for people."""

    name: str
    default: Any
    text: str
    """The docstring under the field, on one line."""


def described(options: type[Any]) -> list[DescribedOption]:
    """Return the options of a dataclass with the docstrings under its fields."""
    texts = help_texts(options)
    return [
        DescribedOption(name=field.name, default=field.default, text=texts.get(field.name, ""))
        for field in dataclasses.fields(options)
    ]


@functools.cache
def help_texts(options: type[Any]) -> Mapping[str, str]:
    """Return the docstring under each field of a class and of those that it extends, on one line.

    It is read from the source, for which commands that show no help have no time.
    """
    texts: dict[str, str] = {}
    for each in reversed(options.__mro__):
        if dataclasses.is_dataclass(each) or issubclass(each, Options):
            (body,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
            assert isinstance(body, ast.ClassDef)
            texts |= {
                field.target.id: " ".join(str(text.value.value).split())
                for field, text in itertools.pairwise(body.body)
                if isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
            }
    return texts


def _names(options: type[Any]) -> list[str]:
    if issubclass(options, Options):
        return list(options.model_fields)
    return [field.name for field in dataclasses.fields(options)]


@functools.cache
def _model_of(options: type[Any]) -> type[BaseModel]:
    """Return a model with the fields of options, to check their values."""
    hints = get_type_hints(options, include_extras=True)
    fields = {name: (hints[name], None) for name in _names(options)}
    config = ConfigDict(strict=True, allow_inf_nan=False, protected_namespaces=())
    return create_model(options.__name__, __config__=config, **cast("dict[str, Any]", fields))


@contextmanager
def _refusals(owner: str, names: Iterable[str]) -> Generator[None]:
    """Turn pydantic's errors into one OptionError, which names the first option that is wrong."""
    try:
        yield
    except ValidationError as error:
        details = error.errors(include_url=False)
        raise OptionError(_sentence(owner, list(names), details)) from None


def _sentence(owner: str, names: list[str], details: list[ErrorDetails]) -> str:
    """Return what must hold for the first option that is wrong, and what was found.

    The members of a union have an error each. An option that is a table says itself what is wrong.
    """
    unknown = [each for each in details if each["type"] == "extra_forbidden"]
    first = (unknown or details)[0]
    raised = first.get("ctx", {}).get("error")
    if isinstance(raised, OptionError) or not first["loc"]:
        return str(raised or first["msg"])
    name = str(first["loc"][0])
    if first["type"] == "missing":
        return f"{owner} must be told {name!r}"
    if unknown:
        return _unknown(owner, name, names)
    rules = dict.fromkeys(_rule(each) for each in details if each["loc"][0] == name)
    said = f"{owner}.{name.rstrip('_')} must be {' or '.join(rules)}: got {first['input']!r}"
    nearest = did_you_mean(str(first["input"]), re.findall(r"'([^']+)'", " ".join(rules)))
    return f"{said}.{nearest}" if nearest else said


def _rule(error: ErrorDetails) -> str:
    kind = error["type"]
    rule = _RULES.get(kind) or _RULES.get(kind.partition("_")[0])
    context: dict[str, Any] = error.get("ctx", {})
    return rule.format(**context) if rule else error["msg"]


def refuse_unknown(owner: str, given: Iterable[str], names: Sequence[str]) -> None:
    """Raise OptionError for the first option that is none of some names; it names the nearest."""
    for name in given:
        if name not in names:
            raise OptionError(_unknown(owner, name, names))


def _unknown(owner: str, name: str, names: Sequence[str]) -> str:
    nearest = did_you_mean(name, names) or did_you_mean(
        name, (option.rpartition(".")[2] for option in names)
    )
    return f"{owner} has no option {name!r}; its options: {', '.join(names) or 'none'}" + (
        f".{nearest}" if nearest else ""
    )


@system_errors()
def read_toml(path: Path) -> dict[str, Any]:
    """Return what a configuration file says.

    Raises:
        OptionError: There is none, or it is not TOML.
        PathError: It cannot be read.
    """
    try:
        return parse_toml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise OptionError(f"there is no configuration at {path}") from None
    except ValueError as error:
        raise OptionError(f"{path} must be TOML: {error}") from error
