"""Tokens of a line: words, punctuation, and what has a type: numbers, times, identifiers."""

import re
import unicodedata
from functools import lru_cache
from typing import TypeAlias

Tokens: TypeAlias = tuple[str, ...]

SLOT = "◊"
"""Stands for a token whose value is left out."""

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t|tember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_YEAR = r"(?:19|20)\d\d"
_DATES = rf"""
    (?:(?:mon|tue|tues|wed|wednes|thu|thur|thurs|fri|sat|satur|sun)(?:day)?\.?,?[ ])?
    (?:{_DAY}[ /-]{_MONTH}[ /-]{_YEAR} | {_MONTH}[ ]{_DAY},?[ ]{_YEAR})(?!\d)
    | {_YEAR}/\d\d/\d\d(?!\d)
    | (?<![\d/.-])\d\d?(?:/\d\d?/|\.\d\d?\.|-\d\d?-){_YEAR}(?![/.-]?\d)
    | {_YEAR}年\d\d?月\d\d?日
"""
"""Of any form but ISO 8601, in lower case: `Wed, 11 Mar 2026`, `March 11th, 2026`, `11/03/2026`."""
_OTHER = r"""
      ;base64,[0-9a-zA-Z+/=_-]+                                   # what a data URI holds
    | [^\W\d_]++(?:['’][^\W\d_]++)*+(?![\d-])                    # most words: no UUID begins so
    | [0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}        # a UUID
    | \d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:[Zz]|[+-]\d\d:?\d\d)?)?   # a date
    | \d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?![\w:])                 # a time
    | (?:(?<=[\s(\[=:,])|^)-\d+(?:[.,]\d+)*(?![^\W_])            # a negative number
    | \d+(?:[.,]\d+)+ | \d+(?![^\W_])                            # a number
    | \d+(?=(?:hp|mp|xp|mv|mn|ms|[kmg]i?b|px|min)(?![^\W_]))   # a number of units
    | [^\W_]*\d[^\W_]*(?:['’][^\W\d_]+)*                         # letters and digits
    | [^\W\d_]+(?:['’][^\W\d_]+)*                                 # a word
    | ◊
    | [ ]{2,} | [^\S ]+                                           # a gap
    | (?:(?<=[^\w\s])|^)[ ](?=[^\w\s])(?!-\d)                     # a blank of a drawing
    | [^\w\s] | _
"""
_TOKEN = re.compile(_OTHER, re.VERBOSE)
_TOKEN_OR_DATE = re.compile(f"{_DATES} | {_OTHER}", re.VERBOSE)
_BASE64 = ";base64,"
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
"""What a terminal obeys and does not show: colours, moves of the cursor, titles of a window."""
_BLANKS = "\u00a0\u2007\u2009\u202f"
_UNSEEN = "\u00ad\u200b\u2060\ufeff"
"""Takes no place on a screen."""
_PLAIN = str.maketrans(_BLANKS + "‘’ʼ‚“”„‐‑‒–—−", " " * len(_BLANKS) + "''''\"\"\"------", _UNSEEN)
_HAS_WORD = re.compile(r"[^\W\d_]{2}")
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")
_TIME = re.compile(r"\d{1,2}:\d\d")
_DATE = re.compile(rf"\d{{4}}-\d\d-\d\d | {_DATES}", re.VERBOSE)
_HEX = re.compile(r"[0-9a-f]{6,}")


def tokenise(line: str) -> Tokens:
    """Return the tokens of a line.

    A single blank is left out, unless it stands between punctuation, as in a drawing. Case is
    left out where there is a word of two letters. Typographic quotes, dashes, blanks and composed
    letters are written as plain ones; what takes no place on a screen is left out.
    """
    if not line.isascii():
        line = unicodedata.normalize("NFC", line).translate(_PLAIN)
    if "\x1b" in line:
        return _with_escapes(line)
    pattern = _TOKEN_OR_DATE if "20" in line or "19" in line else _TOKEN
    return tuple(pattern.findall(line.casefold() if _HAS_WORD.search(line) else line))


def _with_escapes(line: str) -> Tokens:
    """Return the tokens of what is shown, with escape sequences where they stand."""
    shown, escapes, stop = "", list[tuple[int, str]](), 0
    for found in _ESCAPE.finditer(line):
        shown += line[stop : found.start()]
        escapes.append((len(shown), "_".join(found[0].split())))
        stop = found.end()
    shown += line[stop:]
    words = shown.casefold() if _HAS_WORD.search(shown) else shown
    tokens = [(found.start(), found[0]) for found in _TOKEN_OR_DATE.finditer(words)]
    # Sorting keeps an escape sequence before the token that it stands in front of.
    return tuple(token for _, token in sorted([*escapes, *tokens], key=lambda found: found[0]))


@lru_cache(1 << 18)
def kind_of(token: str) -> str:
    """Return the type of a token; nothing for a word or punctuation."""
    if token == SLOT:
        return "slot"
    if token.startswith(_BASE64):
        return "base64"
    if _HEX.fullmatch(token):
        return "digits" if token.isdigit() else f"hex{len(token)}"
    if not _DIGIT.search(token) or is_escape(token):
        return ""
    if _DATE.match(token):
        return "date"
    if _TIME.match(token):
        return "time"
    if token[0] in "-0123456789" and not _LETTER.search(token):
        return "integer" if token.removeprefix("-").isdigit() else "decimal"
    return f"identifier{len(token)}"


def is_number(token: str) -> bool:
    """Return whether a token is a number."""
    return kind_of(token) in ("integer", "decimal")


def is_word(token: str) -> bool:
    """Return whether a token is a word."""
    return token[0].isalpha() and not kind_of(token)


def is_escape(token: str) -> bool:
    """Return whether a token is one that a terminal does not show."""
    return token[0] == "\x1b"


def is_layout(token: str) -> bool:
    """Return whether a token is a gap, a colour or punctuation."""
    return not (token[0].isalnum() or kind_of(token))


def shows_value(tokens: Tokens) -> bool:
    """Return whether a number, a time or an identifier is among tokens; a slot is none."""
    return any(token != SLOT and kind_of(token) for token in tokens)
