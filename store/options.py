"""Options of estimators and objectives: read from text, checked against their types and ranges."""

import dataclasses
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from graphcredit.store.errors import OptionError, system_errors


@dataclass(frozen=True, slots=True)
class Between:
    """Range of a number, ends included unless `above` or `below` says otherwise."""

    low: float
    high: float = math.inf
    above: bool = False
    """Whether the lower end itself is excluded."""
    below: bool = False
    """Whether the upper end itself is excluded."""

    def __contains__(self, value: float) -> bool:
        is_above = value > self.low if self.above else value >= self.low
        is_below = value < self.high if self.below else value <= self.high
        return math.isfinite(value) and is_above and is_below

    def __str__(self) -> str:
        low = f"{'above' if self.above else 'at least'} {self.low:g}"
        high = f"{'below' if self.below else 'at most'} {self.high:g}"
        return low if math.isinf(self.high) else f"{low} and {high}"


Discount: TypeAlias = Annotated[float, Between(0.0, 1.0)]
Count: TypeAlias = Annotated[int, Between(0)]
Weight: TypeAlias = Annotated[float, Between(0.0)]
PositiveDiscount: TypeAlias = Annotated[float, Between(0.0, 1.0, above=True)]

_CALLED: dict[type, str] = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    tuple: "a list of texts",
    Path: "a path",
    Mapping: "a table",
}
"""What a user calls the types that options have."""


def options_from_text(options: type[Any], settings: dict[str, str], *, owner: str) -> Any:
    """Build an options dataclass from `{"gamma": "0.9", …}`.

    Args:
        options: A dataclass whose fields are floats, ints, or Literals of strings.
        settings: Option name to its value as text; what is left out keeps its default.
        owner: Name of the estimator, for messages.

    Raises:
        OptionError: An option is unknown, unreadable or out of its range.
    """
    hints = get_type_hints(options, include_extras=True)
    unknown = sorted(settings.keys() - hints.keys())
    if unknown:
        known = ", ".join(f"{owner}.{name}" for name in hints) or "none"
        raise OptionError(f"{owner} has no option {unknown[0]!r}; its options: {known}")
    values = {name: _read(hints[name], text, owner, name) for name, text in settings.items()}
    made = options(**values)
    check_options(made, owner=owner)
    return made


def check_options(options: Any, *, owner: str) -> None:
    """Raise OptionError if a value is not of its field's type or range."""
    for name, hint in get_type_hints(type(options), include_extras=True).items():
        _check(hint, getattr(options, name), owner, name)


def options_as_json(options: Any) -> dict[str, Any]:
    """Return the effective options, for the metadata of the columns they made."""
    return dataclasses.asdict(options)


def help_of(options: type[Any]) -> dict[str, str]:
    """Return the help text of each field that has one: the string in its `Annotated` type."""
    hints = get_type_hints(options, include_extras=True)
    return {
        name: extra
        for name, hint in hints.items()
        for extra in get_args(hint)[1:]
        if get_origin(hint) is Annotated and isinstance(extra, str)
    }


def _read(hint: Any, text: str, owner: str, name: str) -> Any:
    kind = _kind(hint)
    if kind is str:
        return text
    try:
        return kind(text)
    except ValueError:
        raise OptionError(f"{owner}.{name} must be {_called(kind)}: got {text!r}") from None


def _check(hint: Any, value: Any, owner: str, name: str) -> None:
    type_, rules, choices = _parts(hint)
    if value is None:
        if not _is_optional(hint):
            raise OptionError(f"{owner}.{name} must be {_called(type_)}: got None")
        return
    if value in choices:
        return
    if choices and type_ is str:
        raise OptionError(f"{owner}.{name} must be {_either(choices)}: got {value!r}")
    accepted = (int, float) if type_ is float else (type_,)
    is_bool = isinstance(value, bool)
    is_of_type = is_bool == (type_ is bool) and isinstance(value, accepted)
    if not is_of_type or (type_ is tuple and not all(isinstance(text, str) for text in value)):
        allowed = _either(choices, _called(type_))
        raise OptionError(f"{owner}.{name} must be {allowed}: got {value!r}")
    for rule in rules:
        if value not in rule:
            raise OptionError(f"{owner}.{name} must be {rule}: got {value!r}")


def _either(choices: tuple[str, ...], *others: str) -> str:
    return " or ".join([*map(repr, choices), *others])


def _called(type_: type) -> str:
    return _CALLED.get(type_, f"a {type_.__name__}")


def _kind(hint: Any) -> type:
    return _parts(hint)[0]


def _is_optional(hint: Any) -> bool:
    return type(None) in get_args(_bare(hint))


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _parts(hint: Any) -> tuple[type, tuple[Between, ...], tuple[str, ...]]:
    """Return the type of a field's values but for None, its ranges, and its literal choices.

    The type is `str` where there are choices alone.
    """
    extras = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    rules = tuple(extra for extra in extras if isinstance(extra, Between))
    kinds = _alternatives(_bare(hint))
    literals = [kind for kind in kinds if get_origin(kind) is Literal]
    types = [get_origin(kind) or kind for kind in kinds if kind not in literals] or [str]
    (type_,) = types
    return type_, rules, tuple(choice for kind in literals for choice in get_args(kind))


def _alternatives(bare: Any) -> list[Any]:
    is_union = get_origin(bare) in (Union, UnionType)
    return [part for part in get_args(bare) if part is not type(None)] if is_union else [bare]


@system_errors()
def read_toml(path: Path) -> dict[str, Any]:
    """Return what a configuration file says.

    Raises:
        OptionError: There is none, or it is not TOML.
        PathError: It cannot be read.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise OptionError(f"there is no configuration at {path}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OptionError(f"{path} must be TOML: {error}") from error
