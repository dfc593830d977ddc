"""Apply the rules of `states.toml` to one text."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from graphcredit.credit.merging.overrule.fields import without_fields
from graphcredit.store.state_rules.rule import StateRule

VALUE = "◊"
"""Stands where a value was that says nothing."""

_LINE = "\n"
_BLANKS = " \t"


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleMatch:
    """What a rule meant in a text."""

    text: str
    """The text without it."""
    pieces: tuple[str, ...]
    """The places that it meant, as far as they tell states apart: without case and blanks."""


def find(rule: StateRule, text: str) -> RuleMatch:
    """Return what a rule means in a text."""
    if rule.means == "field":
        left, values = without_fields(text, rule.expression)
        return RuleMatch(text=left, pieces=tuple(values))
    # Most rules find nothing in most texts.
    if rule.expression.search(text) is None:
        return RuleMatch(text=text, pieces=())
    matches = list(rule.expression.finditer(text))
    if rule.means == "values":
        numbers = range(1, rule.expression.groups + 1)
        spans = [match.span(number) for match in matches for number in numbers]
        return RuleMatch(
            text=_replaced(text, spans, VALUE), pieces=_plain(text[a:b] for a, b in spans)
        )
    spans = [match.span() for match in matches]
    pieces = _plain(text[start:stop] for start, stop in spans)
    if rule.means == "words":
        return RuleMatch(text=_replaced(text, spans, rule.words[0]), pieces=pieces)
    return RuleMatch(text=_LINE.join(_lines(text, spans)), pieces=pieces)


def _plain(pieces: Iterable[str]) -> tuple[str, ...]:
    return tuple(" ".join(piece.casefold().split()) for piece in pieces)


def _replaced(text: str, spans: list[tuple[int, int]], by: str) -> str:
    parts: list[str] = []
    done = 0
    for start, stop in spans:
        parts += [text[done:start], by]
        done = stop
    return "".join([*parts, text[done:]])


def _lines(text: str, spans: list[tuple[int, int]]) -> Iterator[str]:
    """Yield the lines of a text without some pieces, as they are where those never were.

    The blanks before a piece go with it, or else those after it; so does a line without a rest.
    """
    start, position = 0, 0
    for line in text.split(_LINE):
        stop = start + len(line)
        own: list[tuple[int, int]] = []
        while position < len(spans) and spans[position][0] < stop:
            own.append((spans[position][0] - start, spans[position][1] - start))
            position += 1
        left = _without_pieces(line, own)
        if not own or left.strip():
            yield left
        start = stop + 1


def _without_pieces(line: str, spans: list[tuple[int, int]]) -> str:
    left, done = "", 0
    for start, stop in spans:
        before = left + line[done:start]
        left = before.rstrip(_BLANKS)
        done = stop
        if len(left) == len(before):
            done += len(line[stop:]) - len(line[stop:].lstrip(_BLANKS))
    return left + line[done:]
