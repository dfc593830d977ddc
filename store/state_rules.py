"""`states.toml`: what a store's user says of which texts are one state.

An entry `[[ignore]]` names what says nothing of the state; `[[keep]]` what always does, and so what
no merge may unite. Its expressions are RE2's, whose time is linear in the text.
"""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.store.errors import OptionError, system_errors
from graphcredit.store.files.parse import parse_toml
from graphcredit.store.files.regular import read_regular
from graphcredit.store.layout import Store

STATE_RULES_KEY = "state_rules"
"""Where the configuration of credit has the digest of the rules; missing where there were none."""

Verb: TypeAlias = Literal["ignore", "keep"]
VERBS: tuple[Verb, ...] = ("ignore", "keep")


@dataclass(frozen=True, kw_only=True, slots=True)
class StateRule:
    """One entry."""

    text: str
    """An expression of RE2; what it matches is meant."""
    by: str = ""
    r"""What takes the place of an ignored match; `\1` stands for a group."""
    tasks: str = "*"
    """Only texts of tasks whose id matches; `*`, `?` and `[abc]` as in a shell."""
    why: str = ""
    """For people."""

    def __post_init__(self) -> None:
        """Raise OptionError if a value is no text, or an expression cannot be used."""
        for name, value in asdict(self).items():
            if not isinstance(value, str):
                raise OptionError(f"{name} must be text: got {value!r}")
        try:
            pc.replace_substring_regex(_EMPTY, pattern=self.text, replacement=self.by)
        except pa.ArrowInvalid as error:
            raise OptionError(f"text and by must be what RE2 accepts: {error}") from None
        if pc.match_substring_regex(_EMPTY, pattern=self.text)[0].as_py():
            raise OptionError(f"text must not match a text without letters: got {self.text!r}")

    def is_for(self, task_id: str) -> bool:
        """Return whether it holds in a task."""
        return fnmatchcase(task_id, self.tasks)


_EMPTY = pa.StringArray.from_buffers(1, pa.py_buffer(bytes(8)), pa.py_buffer(b""))
"""A text without letters; made without NumPy, which no query loads."""
_FIELDS = frozenset(field.name for field in fields(StateRule))


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
            verb: [asdict(rule) | {"why": ""} for rule in getattr(self, verb)] for verb in VERBS
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def names(self) -> tuple[str, ...]:
        """What to call each rule: those of `ignore`, then those of `keep`."""
        return tuple(
            f"{verb} {number}: {json.dumps(rule.text, ensure_ascii=False)}"
            for verb in VERBS
            for number, rule in enumerate(getattr(self, verb), start=1)
        )


@system_errors()
def read_state_rules(store: Store) -> StateRules:
    """Return the rules of a store; none where it has no `states.toml`.

    Raises:
        OptionError: The file breaks its schema; the message names the line.
        PathError: It cannot be read.
    """
    path = store.state_rules_path
    try:
        content = read_regular(path)
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

    Raises:
        OptionError: It is not TOML, or breaks the schema; the message names the line.
    """
    try:
        content = parse_toml(text)
    except ValueError as error:
        raise OptionError(f"{where} must be TOML: {error}") from None
    for name in content:
        if name not in VERBS:
            line = _line_of(text, rf"\s*(\[\[?\s*)?[\"']?{re.escape(name)}\b", 0)
            raise OptionError(
                f"{where}, line {line}: an entry must start with [[ignore]] or [[keep]]: found "
                f"{name!r}"
            )
    return StateRules(*(tuple(_rules(content, verb, text, where)) for verb in VERBS))


def _rules(content: Mapping[str, Any], verb: Verb, text: str, where: str) -> Iterator[StateRule]:
    entries = content.get(verb, [])
    if not isinstance(entries, list):
        line = _line_of(text, rf"\s*(\[\s*)?{verb}\b", 0)
        raise OptionError(
            f"{where}, line {line}: {verb} must be entries [[{verb}]], in two brackets"
        )
    for number, entry in enumerate(cast("list[Any]", entries)):
        line = _line_of(text, rf"\s*\[\[\s*{verb}\s*\]\]", number)
        try:
            yield _rule(entry)
        except OptionError as error:
            raise OptionError(
                f"{where}, line {line}, [[{verb}]] number {number + 1}: {error}"
            ) from None


def _rule(entry: Any) -> StateRule:
    if not isinstance(entry, dict):
        raise OptionError(f"an entry must be a table: found {entry!r}")
    values = cast("dict[str, Any]", entry)
    if unknown := values.keys() - _FIELDS:
        raise OptionError(f"an entry has {', '.join(sorted(_FIELDS))}, not {', '.join(unknown)}")
    if "text" not in values:
        raise OptionError("an entry must have text, the expression of what it means")
    return StateRule(**values)


def _line_of(text: str, start: str, number: int) -> int:
    """Return the line of the n-th line that starts so; the first, if it is written otherwise."""
    lines = [n for n, line in enumerate(text.splitlines(), 1) if re.match(start, line)]
    return lines[number] if number < len(lines) else (lines or [1])[0]
