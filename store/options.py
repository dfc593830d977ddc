"""Options of estimators and objectives: read from text, checked against their types and ranges."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from graphcredit.store.errors import OptionError


@dataclass(frozen=True, slots=True)
class Between:
    """Range of a number, ends included unless `above` says otherwise."""

    low: float
    high: float = math.inf
    above: bool = False
    """Whether the lower end itself is excluded."""

    def __contains__(self, value: float) -> bool:
        is_above = value > self.low if self.above else value >= self.low
        return math.isfinite(value) and is_above and value <= self.high

    def __str__(self) -> str:
        low = f"{'above' if self.above else 'at least'} {self.low:g}"
        return low if math.isinf(self.high) else f"{low} and at most {self.high:g}"


Discount: TypeAlias = Annotated[float, Between(0.0, 1.0)]
Count: TypeAlias = Annotated[int, Between(0)]
Weight: TypeAlias = Annotated[float, Between(0.0)]
PositiveDiscount: TypeAlias = Annotated[float, Between(0.0, 1.0, above=True)]


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


def _read(hint: Any, text: str, owner: str, name: str) -> Any:
    kind = _kind(hint)
    if kind is str:
        return text
    try:
        return kind(text)
    except ValueError:
        raise OptionError(f"{owner}.{name} must be a {kind.__name__}: got {text!r}") from None


def _check(hint: Any, value: Any, owner: str, name: str) -> None:
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            allowed = " or ".join(repr(choice) for choice in get_args(hint))
            raise OptionError(f"{owner}.{name} must be {allowed}: got {value!r}")
        return
    kind = _kind(hint)
    accepted = (int, float) if kind is float else (kind,)
    if isinstance(value, bool) or not isinstance(value, accepted):
        raise OptionError(f"{owner}.{name} must be a {kind.__name__}: got {value!r}")
    for rule in get_args(hint)[1:]:
        if value not in rule:
            raise OptionError(f"{owner}.{name} must be {rule}: got {value!r}")


def _kind(hint: Any) -> type:
    if get_origin(hint) is Annotated:
        return get_args(hint)[0]
    return str if get_origin(hint) is Literal else hint
