"""Rules for `states.toml` that mean what two texts differ in."""

import json
import re
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any, NamedTuple, cast

from graphcredit.credit.merging.overrule.apply import find
from graphcredit.store.errors import OptionError
from graphcredit.store.files.parse import parse_json
from graphcredit.store.state_rules.pattern import KINDS
from graphcredit.store.state_rules.rule import Means, StateRule

_TOKEN = re.compile(r"\w+(?:[-'’:.,]\w+)*|[^\w\s]|\n")
_MOST_TOKENS = 1500
"""The time to compare grows with their square."""
_BEFORE, _AFTER = 3, 2
"""Tokens that say where a value stands."""
_STOPS = frozenset(".,;:!?")
_PHRASE = 6
"""Tokens of the longest phrases that are taken for two ways to say one thing."""
_LONG = 40
"""Characters from which a JSON string is compared as a text of its own."""


class Suggestion(NamedTuple):
    """A rule without its verb."""

    means: Means
    value: str | tuple[str, ...]

    def rule(self) -> StateRule:
        """Return it as a rule."""
        values: dict[str, Any] = {self.means: self.value}
        return StateRule(**values)


class TextDifference(NamedTuple):
    """What two texts differ in at one place."""

    suggestion: Suggestion | None
    """The rule that means it; None where no rule does that is simple."""
    first: str
    """As the first text has it; may be empty."""
    second: str


class _Token(NamedTuple):
    text: str
    start: int
    stop: int


def differences(first: str, second: str) -> Iterator[TextDifference]:
    """Yield what two texts differ in, and the rule that means it."""
    one, other = _fields(first), _fields(second)
    pieces = _of_lines(first, second) if one is None or other is None else _of_fields(one, other)
    for piece in pieces:
        is_right = piece.suggestion is not None and _means(piece.suggestion, first, second)
        yield piece if is_right else piece._replace(suggestion=None)


def _means(suggestion: Suggestion, first: str, second: str) -> bool:
    """Return whether a suggestion is a rule, and means something in one of the texts."""
    try:
        rule = suggestion.rule()
    except OptionError:
        return False
    return any(find(rule, text).pieces for text in (first, second))


def _fields(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        return cast("dict[str, Any]", parse_json(text))
    except ValueError:
        return None


def _of_fields(
    one: Mapping[str, Any], other: Mapping[str, Any], path: str = ""
) -> Iterator[TextDifference]:
    for name in sorted(one.keys() | other.keys()):
        mine, theirs = one.get(name), other.get(name)
        if mine == theirs and (name in one) == (name in other):
            continue
        if isinstance(mine, dict) and isinstance(theirs, dict):
            yield from _of_fields(
                cast("dict[str, Any]", mine), cast("dict[str, Any]", theirs), f"{path}{name}."
            )
        elif isinstance(mine, str) and isinstance(theirs, str) and len(mine) >= _LONG:
            yield from _of_lines(mine, theirs)
        else:
            shown = (
                json.dumps(fields[name], ensure_ascii=False) if name in fields else ""
                for fields in (one, other)
            )
            yield TextDifference(Suggestion("field", path + name), *shown)


def _of_lines(first: str, second: str) -> Iterator[TextDifference]:
    ours, theirs = _tokens(first), _tokens(second)
    matcher = SequenceMatcher(a=[t.text for t in ours], b=[t.text for t in theirs], autojunk=False)
    codes = [("equal", 0, 0, 0, 0), *matcher.get_opcodes(), ("equal", len(ours), len(ours), 0, 0)]
    for number, (tag, start, stop, other_start, other_stop) in enumerate(codes):
        if tag == "equal":
            continue
        # What stands beside it may differ, too: that says nothing of its place.
        equal = codes[number - 1][1], codes[number + 1][2]
        mine, yours = _shifted(ours, start, stop), _shifted(theirs, other_start, other_stop)
        here, there = ours[slice(*mine)], theirs[slice(*yours)]
        shown = _raw(first, here), _raw(second, there)
        kind = _kind_of(here, there)
        if kind:
            yield TextDifference(_value_between(first, ours, mine, equal, kind), *shown)
        elif _is_phrase(here) and _is_phrase(there):
            yield TextDifference(Suggestion("words", tuple(sorted(shown))), *shown)
        else:
            for line in _lines_of(here):
                yield TextDifference(
                    Suggestion("text", _pattern(first, line)), _raw(first, line), ""
                )
            for line in _lines_of(there):
                yield TextDifference(
                    Suggestion("text", _pattern(second, line)), "", _raw(second, line)
                )


def _tokens(text: str) -> list[_Token]:
    tokens = (_Token(each[0], *each.span()) for each in _TOKEN.finditer(text))
    return [token for token, _ in zip(tokens, range(_MOST_TOKENS), strict=False)]


def _shifted(tokens: list[_Token], start: int, stop: int) -> tuple[int, int]:
    """Return where a piece is that reads the same further on, and starts with a word there."""
    while (
        start < stop < len(tokens)
        and not _is_word(tokens[start].text)
        and tokens[start].text == tokens[stop].text
    ):
        start, stop = start + 1, stop + 1
    return start, stop


def _is_word(token: str) -> bool:
    return token[0].isalnum()


def _kind(token: str) -> str:
    kinds = (name for name in KINDS if name != "word")
    return next((k for k in kinds if re.fullmatch(KINDS[k], token, re.IGNORECASE)), "")


def _kind_of(here: list[_Token], there: list[_Token]) -> str:
    """Return the kind of two tokens that differ; empty where they are no values of one kind."""
    if len(here) != 1 or len(there) != 1:
        return ""
    one, other = _kind(here[0].text), _kind(there[0].text)
    if one == other:
        return one
    # 7 and 83ab12 may both be identifiers.
    return "id" if {one, other} == {"id", "number"} else ""


def _is_phrase(tokens: list[_Token]) -> bool:
    return (
        0 < len(tokens) <= _PHRASE
        and "\n" not in {token.text for token in tokens}
        and any(_is_word(token.text) for token in tokens)
    )


def _lines_of(tokens: list[_Token]) -> Iterator[list[_Token]]:
    """Yield the parts of a piece, line by line."""
    line: list[_Token] = []
    for token in [*tokens, _Token("\n", 0, 0)]:
        if token.text != "\n":
            line.append(token)
        elif line:
            yield line
            line = []


def _raw(text: str, tokens: list[_Token]) -> str:
    return text[tokens[0].start : tokens[-1].stop] if tokens else ""


def _pattern(text: str, tokens: list[_Token]) -> str:
    """Return the pattern of some tokens of a line; what has a type may have any value of it."""
    parts: list[str] = []
    for position, token in enumerate(tokens):
        if position and token.start > tokens[position - 1].stop:
            parts.append(" ")
        kind = _kind(token.text)
        parts.append(f"{{{kind}}}" if kind else _doubled(token.text))
    return "".join(parts)


def _doubled(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _value_between(
    text: str, tokens: list[_Token], span: tuple[int, int], equal: tuple[int, int], kind: str
) -> Suggestion | None:
    """Return the rule of a value by what stands beside it on its line.

    Args:
        text: One of the two.
        tokens: Of it.
        span: From where to where the value is.
        equal: From where to where the texts are equal otherwise.
        kind: Of the value.
    """
    start, stop = span
    first, last = start, stop
    while first > max(equal[0], start - _BEFORE) and tokens[first - 1].text != "\n":
        first -= 1
    while first < start and tokens[first].text in _STOPS:
        first += 1
    while last < min(equal[1], stop + _AFTER) and tokens[last].text != "\n":
        last += 1
    if first == start and last == stop:
        return None
    before, after = tokens[first:start], tokens[stop:last]
    pattern = _beside(text, before) + _gap(text, before[-1:], tokens[start:stop])
    pattern += f"{{{kind}}}" + _gap(text, tokens[start:stop], after[:1]) + _beside(text, after)
    return Suggestion("values", pattern)


def _beside(text: str, tokens: list[_Token]) -> str:
    return _doubled(" ".join(_raw(text, tokens).split()))


def _gap(text: str, left: list[_Token], right: list[_Token]) -> str:
    return " " if left and right and text[left[0].stop : right[0].start] else ""
