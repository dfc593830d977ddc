"""Rules that make texts of one state equal before they are compared.

A rule maps a text to a text. Each distinct text is looked at once, whatever the number of steps.
`alfworld` is a rule of another kind: it adds what earlier actions did (`alfworld.py`).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import pyarrow as pa

from graphcredit.credit.steps.arrays import Ints
from graphcredit.store.errors import OptionError
from graphcredit.store.parquet.numbers import array_of, numpy_of

Rule: TypeAlias = Callable[[str], str]


def collapse_whitespace(text: str) -> str:
    """Return the text with every run of white space as one space, and none at its ends."""
    return " ".join(text.split())


TEXT_RULES: dict[str, Rule] = {"whitespace": collapse_whitespace, "casefold": str.casefold}
HISTORY_RULE = "alfworld"
RULE_NAMES: tuple[str, ...] = (*TEXT_RULES, HISTORY_RULE)


@dataclass(frozen=True, slots=True)
class Substitution:
    """A regular expression and what every match of it becomes."""

    pattern: re.Pattern[str]
    """Any `re` expression."""
    text: str
    r"""The replacement; `\1` and `\g<name>` stand for groups."""

    @classmethod
    def parse(cls, argument: str) -> "Substitution":
        r"""Read `REGEX=>TEXT`, as `merge.substitute` takes it; the last `=>` separates.

        Raises:
            OptionError: There is no `=>`, or a side of it is not what `re` accepts.
        """
        regex, arrow, text = argument.rpartition("=>")
        if not arrow or not regex:
            raise OptionError(f"a substitution must read REGEX=>TEXT: got {argument!r}")
        try:
            pattern = re.compile(regex)
            pattern.sub(text, "")
        except (re.error, IndexError) as error:
            raise OptionError(
                f"{argument!r} is not a substitution that re accepts: {error}"
            ) from None
        return cls(pattern, text)

    def __call__(self, text: str) -> str:
        """Return the text with every match replaced."""
        return self.pattern.sub(self.text, text)


def rules_of(names: Sequence[str], substitutions: Sequence[str]) -> list[Rule]:
    """Return the text rules in the order in which they are applied: names, then substitutions.

    Raises:
        OptionError: A name or a substitution is not one.
    """
    for name in names:
        if name not in RULE_NAMES:
            raise OptionError(f"no rule is called {name!r}; there are {', '.join(RULE_NAMES)}")
    named = [TEXT_RULES[name] for name in names if name in TEXT_RULES]
    return [*named, *(Substitution.parse(argument) for argument in substitutions)]


def normalise(texts: pa.Array, rules: Sequence[Rule]) -> tuple[Ints, list[str]]:
    """Apply rules to distinct texts.

    Args:
        texts: [n] texts.
        rules: Applied to each text in order.

    Returns:
        [n] code of each text's normal form, and the normal form of each code.
    """
    raw: list[str] = texts.to_pylist()
    normal = [reduce(lambda left, rule: rule(left), rules, text) for text in raw]
    codes = array_of(normal, pa.large_string()).dictionary_encode()
    return numpy_of(codes.indices).astype("int64"), codes.dictionary.to_pylist()
