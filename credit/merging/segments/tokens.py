"""Typed tokens of a line: what machines print, such as times, identifiers and numbers."""

import re
import zlib
from functools import lru_cache
from typing import NamedTuple

SLOT = "◊"
"""Stands where a typed token was."""

ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
"""What a terminal obeys and does not show: colours, moves of the cursor, titles of a window."""

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}\.?,?[ ])"
_CLOCK = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:[ ]?[ap]m\b)?"
_ZONE = r"(?:z\b|[ ]?[+-]\d\d:?\d\d|[ ](?:utc|gmt)\b)?"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_DATE = rf"""
    {_WEEKDAY}?+(?:
        \d{{4}}-\d\d-\d\d | (?:19|20)\d\d/\d\d/\d\d | \d\d?[/.]\d\d?[/.](?:19|20)\d\d
      | {_DAY}[ /-]{_MONTH}[ /-]\d{{4}} | {_MONTH}[ ]+{_DAY},?[ ]\d{{4}}
      | {_MONTH}[ ]+\d\d?(?=[ ]\d\d:\d\d)
    )(?:[t ,:]+{_CLOCK}{_ZONE})?+(?!\w)
"""
_AGO = r"(?:\d+|an?)[ ](?:second|minute|hour|day|week|month|year|sec|min)s?[ ]ago | just[ ]now"
_UNIT = (
    r"(?:%|°[cf]?|[kmgt]i?b|b(?:ytes?)?|[nµum]?s|secs?|seconds?|min(?:ute)?s?|h(?:ours?)?|days?)"
)
_NUMBER = rf"""
    (?:(?<![\w.,)\]])[+-])?(?<![\w.])\d+(?:[.,]\d+)*(?:e[+-]?\d+)?
    (?:(?:[ ]?{_UNIT}(?!\w))(?:[ ]?\d+[hms]\b)*|(?:[kmb]|hp|px)\b|(?!\w))
"""
_IDENTIFIER = r"""
    (?:/tmp|/var/folders)/[^\s'\",;:)\]}]+ | 0x[0-9a-f]+
  | (?<![\w+/-])(?=[\w+/-]*\d|(?-i:[\w+/-]*[a-z][A-Z]))[\w+/-]{16,}={0,2}
  | (?<![\w-])(?=[^\W\d]*+(?:-[^\W\d]*+)*\d)\w+(?:-\w+)*
  | (?<![\w'-])(?:\w+-)*[a-f]{4,}(?![\w'-])
  | (?<![\w-])(?:\w+-)*[b-df-hj-np-tv-xz]{5,}(?:-\w+)*(?!\w)            # no word has no vowel
"""
_BAR = r"\[[-#=>*.█▓▒░ ]{3,}\] | [-#=>*_.█▓▒░▏▎▍▌▋▊▉■□●○━╸╺]{4,} | [\u2800-\u28ff▁-▇]+"
_TYPED = re.compile(
    rf"""
    (?P<slot>{SLOT}) | (?P<date>(?<!\w){_DATE}) | (?P<ago>(?<!\w)(?:{_AGO})\b)
  | (?P<time>(?<![\w:.]){_CLOCK}(?![\w:]))
  | (?P<ip>(?<![\w.])\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?::\d+)?(?![\w.])) | (?P<bar>{_BAR})
  | (?P<uuid>(?<!\w)[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}(?!\w))
  | (?P<number>{_NUMBER}(?![-]\w)) | (?P<identifier>{_IDENTIFIER})
    """,
    re.VERBOSE | re.IGNORECASE,
)
_MAY_HAVE = re.compile(
    rf"{SLOT}|\d|[a-f]{{4}}|[b-df-hj-np-tv-xz]{{5}}|just now|ago\b|/tmp/"
    rf"|[-#=>*_.█▓▒░■□●○━]{{3}}|[\w+/-]{{16}}|[\u2581-\u28ff]",
    re.I,
)
"""Is in any line with a typed token, and is found faster."""
_VALUE = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?")
_LONGEST_SIZE = 100
"""Most characters of a value with a size: others overflow in sums and squares."""
_BLANKS = re.compile(r"\s+")
_NEIGHBOUR = re.compile(r"\w+|[^\w\s]|◊")


class Line(NamedTuple):
    """A line of a text, or the value of a field or an attribute."""

    address: str
    """Where it stands: names of fields or of the element; empty in running text."""
    pieces: tuple[str, ...]
    """What stands before, between and after its typed tokens."""
    values: tuple[str, ...]
    """The typed tokens."""

    @property
    def text(self) -> str:
        """The line as it was written."""
        return self.without(frozenset())

    def without(self, left_out: frozenset[int]) -> str:
        """Return the line with a slot for some of its values; blanks beside a slot go with it."""
        parts = [self.pieces[0]]
        for position, (value, after) in enumerate(zip(self.values, self.pieces[1:], strict=True)):
            if position in left_out:
                parts[-1] = parts[-1].rstrip()
                parts += [SLOT, after.lstrip()]
            else:
                parts += [value, after]
        return "".join(parts)


def split(address: str, text: str) -> Line:
    """Return a line with its typed tokens apart."""
    return Line(address, *_apart(text))


@lru_cache(1 << 16)
def _apart(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if _MAY_HAVE.search(text) is None:
        return (text,), ()
    pieces: list[str] = []
    values: list[str] = []
    done = 0
    for match in _TYPED.finditer(text):
        pieces.append(text[done : match.start()])
        values.append(match[0])
        done = match.end()
    return (*pieces, text[done:]), tuple(values)


@lru_cache(1 << 16)
def kind_of(value: str) -> str:
    """Return the kind of a typed token: a name of a group of the expression above."""
    match = _TYPED.fullmatch(value)
    kind = (match.lastgroup if match else None) or "identifier"
    return "identifier" if kind in ("uuid", "ip") else kind


@lru_cache(1 << 16)
def size_of(value: str) -> float:
    """Return how large a value is; equal values without a size have one number, others another."""
    kind = kind_of(value)
    if kind in ("date", "time"):
        return float("".join(filter(str.isdecimal, value)) or 0)
    match = _VALUE.match(value) if kind in ("number", "ago") else None
    if match is None or len(match[0]) > _LONGEST_SIZE:
        return float(zlib.crc32(value.encode()))
    return float(match[0].replace(",", ""))


@lru_cache(1 << 16)
def template(pieces: tuple[str, ...]) -> str:
    """Return what lines have in common that differ in their values and in gaps alone."""
    return _BLANKS.sub(" ", SLOT.join(pieces)).strip()


def neighbours(template: str) -> list[tuple[str, str]]:
    """Return the tokens on both sides of each slot; empty at the ends of the line."""
    tokens = ["", *_NEIGHBOUR.findall(template), ""]
    return [(tokens[at - 1], tokens[at + 1]) for at, token in enumerate(tokens) if token == SLOT]
