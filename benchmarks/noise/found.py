"""Kinds of noise in which versions 4 and 5 of `segments` found little; now part of its design."""

import random
import re

from benchmarks.noise.disturb import Disturb, VisitRandom


def _named(text: str, rng: VisitRandom, index: int) -> str:
    """A session and a guest that stay for a whole rollout."""
    session, guest = f"{rng.rollout.getrandbits(32):08x}", rng.rollout.randrange(1000, 9999)
    return f"session {session} | user guest-{guest}\n{text}"


def _shell(text: str, rng: VisitRandom, index: int) -> str:
    """A shell on a machine of its own for each rollout, and how long a command took."""
    host, folder = rng.rollout.getrandbits(16), rng.rollout.getrandbits(24)
    place = f"/tmp/run-{folder:06x}"
    took = f"[exit 0 in {rng.random():.2f}s] {place}/out-{rng.randrange(1000)}.txt"
    return f"agent@box-{host:04x}:{place}$ look\n{text}\n{took}"


_LEGAL = (
    "Copyright 2025 Example Corp.",
    "All rights reserved.",
    "Terms of use apply.",
    "Version {}.{}",
    "Contact support if you need help.",
    "This page was generated in {} ms.",
)


def _footed(text: str, rng: random.Random, index: int) -> str:
    """Two of six lines below."""
    lines = [line.format(rng.randrange(99), rng.randrange(9)) for line in rng.sample(_LEGAL, 2)]
    return "\n".join([text, *lines])


def _opened(text: str, rng: random.Random, index: int) -> str:
    """Lines begin with a word of somebody who talks."""
    openings = ("Well, ", "Hmm, ", "Okay: ", "So, ")

    def opened(line: str) -> str:
        if not line[:1].isalpha() or rng.random() < 0.5:
            return line
        return rng.choice(openings) + line[0].lower() + line[1:]

    return "\n".join(map(opened, text.splitlines()))


def _stopped(text: str, rng: random.Random, index: int) -> str:
    """Sentences end in any sign."""
    return re.sub(r"\.(?=\s|$)", lambda _: rng.choice((".", "!", "...", ";")), text)


def _progressing(text: str, rng: random.Random, index: int) -> str:
    """A bar that says how far something is."""
    done = rng.randrange(11)
    return f"[{'#' * done}{'-' * (10 - done)}] {10 * done + rng.randrange(10)}%\n{text}"


def _located(text: str, rng: random.Random, index: int) -> str:
    """Half of the lines have coordinates."""

    def located(line: str) -> str:
        if not line or rng.random() < 0.5:
            return line
        return f"{line} (x={rng.randrange(100)}, y={rng.randrange(100)})"

    return "\n".join(map(located, text.splitlines()))


def _doubled(text: str, rng: random.Random, index: int) -> str:
    """Lines come twice."""
    lines = text.splitlines()
    return "\n".join(x for line in lines for x in [line] * (1 + (rng.random() < 0.2)))


_SIGNS = {"'": "'’", '"': '"“', "-": "-–", " ": ("  ", " ", "\u00a0")}


def _typeset(text: str, rng: random.Random, index: int) -> str:
    """Quotes, dashes and blanks of a typesetter."""

    def sign(letter: str) -> str:
        return rng.choice(_SIGNS[letter]) if letter in _SIGNS and rng.random() < 0.5 else letter

    return "".join(map(sign, text))


def _bannered(text: str, rng: random.Random, index: int) -> str:
    """An advertisement of two lines at a random line, one of eighty."""
    kind = rng.choice(("Blue", "Warm", "Tiny", "Royal"))
    ware = rng.choice(("socks", "lamps", "kettles", "bikes", "pillows"))
    banner = (
        f"{kind} {ware} now {rng.choice((10, 25))}% off at {rng.choice(('ShopMore', 'BuyIt'))}!"
    )
    lines = text.splitlines()
    place = rng.randrange(len(lines) + 1)
    return "\n".join([*lines[:place], banner, "Click here to learn more.", *lines[place:]])


def _garbled(text: str, rng: random.Random, index: int) -> str:
    """Digits stand for letters that they look like."""
    digits = {"o": "0", "e": "3", "i": "1"}
    return re.sub("[oei]", lambda at: digits[at[0]] if rng.random() < 0.02 else at[0], text)


def _echoed(text: str, rng: VisitRandom, index: int) -> str:
    """A terminal repeats the command before."""
    return f"> {rng.action_before or 'look'}\n{text}"


_NAMES = ("Ada", "Bruno", "Chen", "Dora", "Emil", "Farah", "Goran", "Hanna", "Ivan", "Jonas")


def _guided(text: str, rng: VisitRandom, index: int) -> str:
    """Somebody with a first name, and a release of the server, for a whole rollout."""
    name, release = rng.rollout.choice(_NAMES), rng.rollout.choice(("1.4.2", "1.4.3", "1.5.0"))
    return f"Server {release}\n{name} is with you.\n{text}"


def _lasting(text: str, rng: VisitRandom, index: int) -> str:
    """The weather changes at one look in four."""
    kinds = ("sunny", "cloudy", "rainy", "foggy")
    weather = rng.rollout.choice(kinds)
    for _ in range(index):
        if rng.rollout.random() < 0.25:
            weather = rng.rollout.choice(kinds)
    return f"It is {weather} outside.\n{text}"


KINDS: dict[str, Disturb] = {
    "named": _named,
    "shell": _shell,
    "footed": _footed,
    "opened": _opened,
    "stopped": _stopped,
    "progress": _progressing,
    "located": _located,
    "doubled": _doubled,
    "typeset": _typeset,
    "bannered": _bannered,
    "garbled": _garbled,
    "echoed": _echoed,
    "guided": _guided,
    "lasting": _lasting,
}
