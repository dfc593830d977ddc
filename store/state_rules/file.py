"""`states.toml`: what a store's user says of which texts are one state.

An entry `[[ignore]]` names what says nothing of the state; `[[keep]]` what always does, and so what
no merge may unite.
"""

import functools
import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Literal, Self, TypeAlias, cast

from pydantic import model_validator

from graphcredit.store.errors import OptionError, system_errors
from graphcredit.store.layout import Store
from graphcredit.store.options import Options, Texts
from graphcredit.store.state_rules.pattern import (
    compile_path,
    compile_pattern,
    compile_words,
    has_kinds,
)

STATE_RULES_KEY = "state_rules"
"""Where the configuration of credit has the digest of the rules; missing where there were none."""

Verb: TypeAlias = Literal["ignore", "keep"]
VERBS: tuple[Verb, ...] = ("ignore", "keep")
Means: TypeAlias = Literal["field", "text", "values", "words"]
_MEANS: tuple[Means, ...] = ("field", "text", "values", "words")


class StateRule(Options):
    """One entry. Exactly one of `field`, `text`, `values` and `words` says what it is about."""

    owner: ClassVar[str] = "an entry"

    field: str | None = None
    """A field of JSON in the text, by its path: `status.time`, `items[].id`, `**.latency`."""
    text: str | None = None
    """A piece of a line: words and kinds of tokens, such as `battery at {number} percent`."""
    values: str | None = None
    """Such a piece, of which only the tokens in braces are meant."""
    words: Texts = ()
    """Phrases that may stand for each other."""
    tasks: str = "*"
    """Only texts of tasks whose id matches; `*`, `?` and `[abc]` as in a shell."""
    why: str = ""
    """For people."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        """Refuse what is not a pattern."""
        given = [name for name in _MEANS if getattr(self, name) not in (None, ())]
        if len(given) != 1:
            raise OptionError(
                f"an entry must have one of {', '.join(_MEANS)}: found "
                f"{' and '.join(given) or 'none of them'}"
            )
        if self.values is not None and not has_kinds(self.expression):
            raise OptionError(
                f"values must have a kind of token in braces, or else be `text`: got "
                f"{self.values!r}"
            )
        assert self.expression
        return self

    @functools.cached_property
    def means(self) -> Means:
        """Which of the four it has."""
        return next(name for name in _MEANS if getattr(self, name) not in (None, ()))

    @functools.cached_property
    def expression(self) -> re.Pattern[str]:
        """What its path, its pattern or its words match."""
        if self.field is not None:
            return _path(self.field)
        if self.words:
            return _words(self.words)
        return _pattern(cast("str", self.values if self.text is None else self.text))

    def is_for(self, task_id: str) -> bool:
        """Return whether it holds in a task."""
        return fnmatchcase(task_id, self.tasks)


_path = functools.lru_cache(compile_path)
_pattern = functools.lru_cache(compile_pattern)
_words = functools.lru_cache(compile_words)


@dataclass(frozen=True, slots=True)
class StateRules:
    """The rules of a store; none by default."""

    ignore: tuple[StateRule, ...] = ()
    """What says nothing of a state, in the order in which it is taken away."""
    keep: tuple[StateRule, ...] = ()
    """What always tells states apart, whatever `ignore` and the merge make of it."""

    def __bool__(self) -> bool:
        return bool(self.ignore or self.keep)

    @property
    def digest(self) -> str | None:
        """A hash of all that states depend on; None without a rule."""
        if not self:
            return None
        content = {
            verb: [rule.model_dump(exclude={"why"}) for rule in getattr(self, verb)]
            for verb in VERBS
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def names(self) -> tuple[str, ...]:
        """What to call each rule: those of `ignore`, then those of `keep`."""
        return tuple(
            f"{verb} {number}: {rule.means} = {_shown(getattr(rule, rule.means))}"
            for verb in VERBS
            for number, rule in enumerate(getattr(self, verb), start=1)
        )


def _shown(value: str | tuple[str, ...]) -> str:
    return json.dumps(value, ensure_ascii=False)


@system_errors()
def read_state_rules(store: Store) -> StateRules:
    """Return the rules of a store; none where it has no `states.toml`.

    Raises:
        OptionError: The file breaks its schema; the message names the line.
        PathError: It cannot be read.
    """
    path = store.state_rules_path
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return StateRules()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise OptionError(f"{path}, line {line}: must be UTF-8: {error}") from None
    return parse_state_rules(text, where=str(path))


def parse_state_rules(text: str, *, where: str) -> StateRules:
    """Return the rules that a text holds.

    Args:
        text: TOML.
        where: What to call it in messages.

    Raises:
        OptionError: It is not TOML, or breaks the schema; the message names the line.
    """
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise OptionError(f"{where} must be TOML: {error}") from None
    for name in found:
        if name not in VERBS:
            line = _line_of(text, rf"\s*(\[\[?\s*)?[\"']?{re.escape(name)}\b", 0)
            raise OptionError(
                f"{where}, line {line}: an entry must start with [[ignore]] or [[keep]]: found "
                f"{name!r}"
            )
    return StateRules(*(tuple(_rules(found, verb, text, where)) for verb in VERBS))


def _rules(found: Mapping[str, Any], verb: Verb, text: str, where: str) -> Iterator[StateRule]:
    entries = found.get(verb, [])
    if not isinstance(entries, list):
        line = _line_of(text, rf"\s*(\[\s*)?{verb}\b", 0)
        raise OptionError(
            f"{where}, line {line}: {verb} must be entries [[{verb}]], in two brackets"
        )
    for number, entry in enumerate(cast("list[Any]", entries)):
        line = _line_of(text, rf"\s*\[\[\s*{verb}\s*\]\]", number)
        place = f"{where}, line {line}, [[{verb}]] number {number + 1}"
        if not isinstance(entry, dict):
            raise OptionError(f"{place}: an entry must be a table: found {entry!r}")
        try:
            yield StateRule(**cast("dict[str, Any]", entry))
        except OptionError as error:
            raise OptionError(f"{place}: {error}") from None


def _line_of(text: str, start: str, number: int) -> int:
    """Return the line of the n-th line that starts so; the first, if it is written otherwise."""
    lines = [n for n, line in enumerate(text.splitlines(), 1) if re.match(start, line)]
    return lines[number] if number < len(lines) else (lines or [1])[0]
