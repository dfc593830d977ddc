"""Names in a text that nobody has marked: capitalised phrases, and the sentences they share."""

import re
from collections.abc import Iterator

_WORD = r"[^\W\d_a-zß-öø-ÿ][\w'’-]*"
_LINK = r"(?: (?:of|the|de|del|la|le|du|von|van|der|di|da|al|&))?"
_PHRASE = re.compile(rf"{_WORD}(?:{_LINK} {_WORD})*")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_ANSWERED = (
    re.compile(r"(?s)<answer>\s*(.*?)\s*</answer>"),
    re.compile(r'(?s)\w+\(\{"\w+": "(.*)"\}\)'),
    re.compile(r"(?s)\w+\[(.*)\]"),
    re.compile(r"(?i)(?:final )?answer(?: is)?:\s*(.+)"),
)
_MOST_WORDS = 12
"""Words of a whole action that may be an answer."""

_NEAR = 30
"""Names of one sentence are related if at most so many stand between them: in a list of hundreds
only neighbours are."""


def names_in(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the names of each sentence, and those among them that are surely names.

    A single word that begins a sentence has its capital letter from there, so it is not sure.
    """
    for sentence in _SENTENCE.split(text):
        names = [(match.group(), match.start()) for match in _PHRASE.finditer(sentence)]
        if names:
            sure = [name for name, start in names if " " in name or start > 0]
            yield [name for name, _ in names], sure


def pairs_of(names: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of different names of a sentence that stand near each other."""
    for place, name in enumerate(names):
        for other in names[place + 1 : place + 1 + _NEAR]:
            if other != name:
                yield min(name, other), max(name, other)


def answer_in(action: str) -> str | None:
    """Return what an action answers, as `<answer>`, `finish[…]`, a call or `answer: …` say it.

    A short action that has none of these is an answer as it stands; a long one is None.
    """
    for pattern in _ANSWERED:
        match = pattern.search(action)
        if match and match.group(1).strip():
            return match.group(1).strip()
    short = action.strip()
    return short if 0 < len(short.split()) <= _MOST_WORDS else None
