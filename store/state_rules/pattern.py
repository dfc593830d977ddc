"""The pattern language of `states.toml`: words, and kinds of tokens in braces.

`battery at {number} percent` matches within one line; case and the number of blanks do not matter.
A pattern that starts or ends with a word matches whole words. `{{` and `}}` are braces.

There is nothing to go back over: every token is taken whole, and `{any}` ends where what follows it
is first found. So the time is linear in the text, whatever the pattern.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import groupby, takewhile

from graphcredit.store.errors import OptionError

_DEPTH = 30
"""Most groups of an expression in one another."""

MOST_ANY = 1000
"""Most characters that `{any}` stands for."""

KINDS: Mapping[str, str] = {
    "date": r"(?<!\w)\d{4}-\d\d-\d\d(?:[t ]\d\d:\d\d(?::\d\d(?:[.,]\d++)?+)?+)?+"
    r"(?:z|[+-]\d\d:?+\d\d)?+(?!\w)",
    "time": r"(?<!\w)\d\d?+:\d\d(?::\d\d(?:[.,]\d++)?+)?+(?!\w)",
    "number": r"(?<!\w)(?<!\d[.,])[+-]?+\d++(?:[.,]\d++)*+(?!\w)",
    "id": r"(?<![\w-])(?:(?=[^\W\d]*+(?:-[^\W\d]*+)*+\d)[\w-]++|[0-9a-f]{6,}+(?![\w-]))",
    "word": r"(?<!\w)(?<!\w['’-])[^\W\d_]++(?:['’-][^\W\d_]++)*+(?!\w)",
}
"""Name of a kind of token to its expression; each takes a whole token or nothing. An `id` has a
digit, or is six hexadecimal letters or more."""

_ANY = "any"
_PIECES = re.compile(r"\{\{|\}\}|\{(\w*)\}|[{}]|[ \t]+|[^{}\s]+|\s")


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return the expression of a pattern; each token in braces is a group of it.

    Raises:
        OptionError: It is not a pattern.
    """
    expressions = list(_expressions(pattern))
    if not expressions or expressions[0] is None:
        raise OptionError(
            "a pattern must start with a word or a kind of token, "
            f"not with {'{any}' if expressions else 'nothing'}: got {pattern!r}"
        )
    if _is_wordlike(pattern[-1]) and expressions[-1] is not None:
        expressions[-1] += r"(?!\w)"
    # Each `{any}` ends where what follows it, up to the next one, is first found.
    result, *chunks = _split(expressions)
    for chunk in chunks:
        any_more = rf"([^\n]{{0,{MOST_ANY}}}"
        result += rf"(?>{any_more}?){chunk})" if chunk else rf"{any_more}+)"
    return re.compile(_whole_from(pattern[0]) + result, re.IGNORECASE)


def has_kinds(pattern: re.Pattern[str]) -> bool:
    """Return whether a compiled pattern has a token in braces."""
    return pattern.groups > 0


def compile_words(words: tuple[str, ...]) -> re.Pattern[str]:
    """Return the expression of any of some phrases; the longest that fits is taken.

    Raises:
        OptionError: A phrase is empty, there are fewer than two, or one is there twice.
    """
    folded = [" ".join(phrase.casefold().split()) for phrase in words]
    if len(folded) < 2 or not all(folded) or len(set(folded)) < len(folded):
        raise OptionError(f"words must be two or more different phrases: got {list(words)!r}")
    starts = groupby(sorted(folded), key=lambda phrase: phrase[0])
    either = "|".join(_whole_from(letter) + _any_of([*phrases]) for letter, phrases in starts)
    return re.compile(either, re.IGNORECASE)


def compile_path(path: str) -> re.Pattern[str]:
    """Return the expression of a path of JSON names: `a.b`, `items[].id`, `*.time`, `**.time`.

    Raises:
        OptionError: It is not a path.
    """
    names = path.split(".")
    if not path or names.count("**") > 1 or not all(map(_is_name, names)):
        raise OptionError(
            "field must be names with dots between them, [] after the name of a list, * for any "
            f"one name and at most one ** for any number of them: got {path!r}"
        )
    expression = ""
    for number, name in enumerate(names):
        if name == "**":
            expression += r"(?:[^.]+\.)*" if number + 1 < len(names) else r"[^.]+(?:\.[^.]+)*"
            continue
        plain, lists = _name_and_lists(name)
        expression += r"[^.\[]+" if plain == "*" else re.escape(plain)
        expression += re.escape(lists) + (r"\." if number + 1 < len(names) else "")
    return re.compile(expression)


def _name_and_lists(name: str) -> tuple[str, str]:
    plain = name
    while plain.endswith("[]"):
        plain = plain.removesuffix("[]")
    return plain, name.removeprefix(plain)


def _is_name(name: str) -> bool:
    plain, _ = _name_and_lists(name)
    if name == "**" or plain == "*":
        return True
    return bool(name) and not any(sign in plain for sign in "*[]\n")


def _expressions(pattern: str) -> Iterator[str | None]:
    """Yield the expression of each piece of a pattern; None for `{any}`."""
    if pattern != pattern.strip():
        raise OptionError(f"a pattern must not start or end with a blank: got {pattern!r}")
    last: str | None = ""
    for piece in _PIECES.finditer(pattern):
        token, name = piece[0], piece[1]
        if token in ("{", "}"):
            raise OptionError(
                f"a brace must be doubled, or stand around {_kinds()}: got {pattern!r}"
            )
        if name is not None and name != _ANY and name not in KINDS:
            raise OptionError(f"{token} must be one of {_kinds()}: got {pattern!r}")
        if token.isspace() and token.strip(" \t"):
            raise OptionError(f"a pattern must be within one line: got {pattern!r}")
        if name == _ANY:
            if last is None:
                raise OptionError(f"two {{any}} must have something between them: got {pattern!r}")
            last = None
        elif name is not None:
            last = f"({KINDS[name]})"
        elif token.isspace():
            # A blank after `{any}` does not part it from another one.
            yield r"[ \t]++"
            continue
        else:
            last = re.escape(token[0] if token in ("{{", "}}") else token)
        yield last


def _split(expressions: list[str | None]) -> list[str]:
    """Return what is before, between and after the `{any}`s."""
    chunks = [""]
    for expression in expressions:
        if expression is None:
            chunks.append("")
        else:
            chunks[-1] += expression
    return chunks


def _kinds() -> str:
    return ", ".join(f"{{{name}}}" for name in (*KINDS, _ANY))


def _whole_from(letter: str) -> str:
    """Return what must hold before a word that starts so; it looks for the letter first."""
    if not _is_wordlike(letter):
        return ""
    return rf"(?={re.escape(letter)})(?<!\w)"


def _is_wordlike(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def _any_of(phrases: list[str], depth: int = 0) -> str:
    """Return the expression of sorted phrases, the longest first.

    What several begin with stands in it once, or else 20,000 phrases would take a minute a text.
    """
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(phrases[0], phrases[-1], strict=False))
    shared = "".join(letter for letter, _ in pairs)
    rests = [phrase.removeprefix(shared) for phrase in phrases]
    end = r"(?!\w)" if _is_wordlike((shared or phrases[0])[-1]) else ""
    if len(rests) == 1:
        return _phrase(shared) + end
    if depth >= _DEPTH:
        flat = (
            _phrase(rest) + (r"(?!\w)" if _is_wordlike(rest[-1]) else "") for rest in rests if rest
        )
        choices = sorted(flat, key=len, reverse=True)
    else:
        starts = groupby(filter(None, rests), key=lambda rest: rest[0])
        choices = [_any_of([*group], depth + 1) for _, group in starts]
    if "" in rests:
        choices.append(end)
    return f"{_phrase(shared)}(?:{'|'.join(choices)})"


def _phrase(phrase: str) -> str:
    return r"[ \t]++".join(map(re.escape, phrase.split(" ")))
