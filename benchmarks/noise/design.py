"""Kinds of noise that `--merge segments` was designed with. It is judged with `judge.py`."""

import html
import json
import random
import re
import textwrap

from benchmarks.noise import found
from benchmarks.noise.advertised import STRENGTHS, advertised
from benchmarks.noise.disturb import Disturb
from benchmarks.noise.phrases import rephrased, retold, reworded


def _logged(text: str, rng: random.Random, index: int) -> str:
    """Add a time and a session that no other visit has, and shuffle the lines."""
    time = f"[{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}]"
    session = f"Session {rng.getrandbits(32):08x}, {rng.randrange(10, 900)} ms."
    lines = text.splitlines()
    rng.shuffle(lines)
    return "\n".join([time, *lines, session])


def _counted(text: str, rng: random.Random, index: int) -> str:
    """Add the number of steps taken."""
    return f"Step {index} of 30\n{text}"


def _babbled(text: str, rng: random.Random, index: int) -> str:
    """Add up to two lines of random new words."""
    lines = text.splitlines()
    for _ in range(rng.randrange(3)):
        words = ["".join(rng.choices("abcdefghiklmnoprstuvwy", k=6)) for _ in range(6)]
        lines.insert(rng.randrange(len(lines) + 1), f"{' '.join(words).capitalize()}!")
    return "\n".join(lines)


_LURES = (
    "You are in for a treat: visit our kitchen store",
    "There is a closed door leading to savings",
    "You see a key to success at the office",
    "You are carrying a coin? Spend it at our shop",
    "On the table you see a bargain",
    "You can make out a great deal on a wooden chair",
)


def _lured(text: str, rng: random.Random, index: int) -> str:
    """Add up to two advertisements in the words of the games."""
    lines = text.splitlines()
    for _ in range(rng.randrange(3)):
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(_LURES) + rng.choice("!."))
    return "\n".join(lines)


def _rewrapped(text: str, rng: random.Random, index: int) -> str:
    """Wrap the lines at another width."""
    width = rng.randrange(25, 90)
    return "\n".join(part for line in text.splitlines() for part in textwrap.wrap(line, width))


def _enveloped(text: str, rng: random.Random, index: int) -> str:
    """Put the text into a tool result beside the time that it took and an identifier."""
    fields = {
        "output": text,
        "seconds": round(rng.uniform(0.1, 9), 2),
        "call_id": f"call_{rng.getrandbits(48):012x}",
    }
    return json.dumps(dict(rng.sample(list(fields.items()), len(fields))))


def _tagged(text: str, rng: random.Random, index: int) -> str:
    """Make a page of the lines, with classes that no other page has."""
    lines = (
        f'<p class="css-{rng.getrandbits(24):06x}">{html.escape(line)}</p>'
        for line in text.splitlines()
    )
    return f'<main data-key="{rng.getrandbits(32):08x}">\n' + "\n".join(lines) + "\n</main>"


def _metered(text: str, rng: random.Random, index: int) -> str:
    """Add fuel that runs out, and a temperature."""
    fuel = max(0.0, 60 - 1.5 * index - rng.random() * 2)
    return f"{text}\nFuel: {fuel:.1f} litres. It is {rng.randrange(12, 30)} degrees outside."


def _emphasised(text: str, rng: random.Random, index: int) -> str:
    """Set the lines of a text in one of many ways, behind a host with a random name."""
    mark = rng.choice(("**", "__", "`", "~~", "==", "''"))
    lines = (f"{mark}{line}{mark}" for line in text.splitlines())
    host = "".join(rng.choices("bcdfghjklmnpqrstvwxz", k=6))
    return f"node-{host} > cat page\n" + "\n".join(lines)


def _coloured(text: str, rng: random.Random, index: int) -> str:
    """Print some lines in another colour each, below the directory of a session."""
    lines = [
        f"\x1b[1;{rng.randrange(31, 37)}m{line}\x1b[0m" if rng.random() < 0.5 else line
        for line in text.splitlines()
    ]
    session = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=5))
    return "\n".join([f"~/sessions/{session}/game $ cat room.txt", *lines])


def _terminal(text: str, rng: random.Random, index: int) -> str:
    """Colours, a prompt with a time, and a temporary path."""
    time = f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}"
    path = "/tmp/run-" + "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=8))
    colour = rng.randrange(31, 37)
    body = "\n".join(f"\x1b[{colour}m{line}\x1b[0m" for line in text.splitlines())
    return (
        f"agent@{rng.getrandbits(16):04x}:{path} ({time})$ look\n{body}\nreal {rng.random():.3f}s"
    )


def _referenced(text: str, rng: random.Random, index: int) -> str:
    """Add a reference to each exit and each thing on the floor."""
    return re.sub(
        r"\b(exit|door|floor|on the \w+)\b",
        lambda found: f"{found[0]} [ref={rng.getrandbits(20):05x}]",
        text,
    )


def _mistyped(text: str, rng: random.Random, index: int) -> str:
    """Double or lose a letter in one word of forty."""

    def type_(found: re.Match[str]) -> str:
        word = found[0]
        if rng.random() > 1 / 40:
            return word
        place = rng.randrange(1, len(word) - 1)
        return word[:place] + rng.choice(("", word[place] * 2)) + word[place + 1 :]

    return re.sub(r"[A-Za-z]{4,}", type_, text)


KINDS: dict[str, Disturb] = {
    **{noise.name: advertised(noise) for noise in STRENGTHS},
    "logged": _logged,
    "counted": _counted,
    "babbled": _babbled,
    "lured": _lured,
    "rewrapped": _rewrapped,
    "enveloped": _enveloped,
    "tagged": _tagged,
    "metered": _metered,
    "reworded": reworded,
    "retold": retold,
    "rephrased": rephrased,
    "emphasised": _emphasised,
    "coloured": _coloured,
    "terminal": _terminal,
    "referenced": _referenced,
    "mistyped": _mistyped,
    **found.KINDS,
}
"""Advertisements at four strengths, then others."""
