"""Texts that `--merge segments` must leave apart: noise of people, clean texts that share words."""

import random
import re
import textwrap
import zlib

from benchmarks.noise.disturb import Disturb, VisitRandom

_SYNONYMS = (
    ("There is", "You notice", "Here you find"),
    ("You are carrying", "You carry", "In your bag you have"),
)


def _wording(text: str, rng: VisitRandom, index: int) -> str:
    """Two phrases have three synonyms each."""
    for phrases in _SYNONYMS:
        pattern = re.compile("|".join(map(re.escape, phrases)), re.IGNORECASE)
        text = pattern.sub(lambda _, phrases=phrases: rng.choice(phrases), text)
    return text


def _typing(text: str, rng: VisitRandom, index: int) -> str:
    """Two neighbouring letters change places in 3 % of the words."""

    def swap(match: re.Match[str]) -> str:
        word = match[0]
        if rng.random() > 0.03:
            return word
        at = rng.randrange(len(word) - 1)
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]

    return re.sub(r"[A-Za-z]{3,}", swap, text)


def _echoed(text: str, rng: VisitRandom, index: int) -> str:
    """A terminal repeats the command before."""
    return f"> {rng.action_before or 'look'}\n{text}"


def _guided(text: str, rng: VisitRandom, index: int) -> str:
    """Somebody with a first name for a whole rollout."""
    return f"{rng.rollout.choice(('Ada', 'Bruno', 'Chen', 'Dora'))} is with you.\n{text}"


def _wrapped(text: str, rng: VisitRandom, index: int) -> str:
    """Lines are wrapped at another width."""
    width = rng.randrange(25, 90)
    return "\n".join(part for line in text.splitlines() for part in textwrap.wrap(line, width))


_CLOSINGS = ("That is all, thank you.", "Please let me know if you need more.", "Option 2, please.")


def _closed(text: str, rng: VisitRandom, index: int) -> str:
    """A clean log: each state ends in one of three sentences."""
    return f"{text}\n{_CLOSINGS[zlib.crc32(text.encode()) % 3]}"


def _chosen(text: str, rng: VisitRandom, index: int) -> str:
    """A clean log: all that is seen is one number in one sentence."""
    return f"I take number {zlib.crc32(text.encode()) % 10_000}, please."


def _said(text: str, rng: VisitRandom, index: int) -> str:
    """A simulated user says each thing in his own words, and closes as all do."""
    words = text.split()
    some = random.Random(rng.random()).sample(words, min(len(words), 12))
    return f"{' '.join(some)}\n{rng.choice(_CLOSINGS)}"


KINDS: dict[str, Disturb] = {
    function.__name__.removeprefix("_"): function
    for function in (_wording, _typing, _echoed, _guided, _wrapped, _closed, _chosen, _said)
}
