"""Kinds of noise that judge `--merge segments`; nothing in it may be changed with them in view."""

import html
import json
import random
import re

from benchmarks.noise.disturb import Disturb


def _markup(text: str, rng: random.Random, index: int) -> str:
    """A page whose elements have random identifiers."""

    def element(tag: str, body: str) -> str:
        return f'<{tag} id="{rng.getrandbits(32):x}">{body}</{tag}>'

    first, *others = text.splitlines() or [""]
    items = "".join(element("li", html.escape(line)) for line in others)
    return element("div", element("h1", html.escape(first)) + element("ul", items))


def _gauges(text: str, rng: random.Random, index: int) -> str:
    """A battery that runs down, a clock and hit points."""
    battery = max(0, 100 - 3 * index - rng.randrange(3))
    seconds = 36000 + 47 * index + rng.randrange(40)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}"
    return f"[{clock}] Battery: {battery}%\n{text}\nHP {rng.randrange(20, 40)}/40"


_SYNONYMS = (
    ("There is", "You notice", "Here you find"),
    ("You are carrying", "You carry", "In your bag you have"),
    ("leading", "that leads", "going"),
)


def _wording(text: str, rng: random.Random, index: int) -> str:
    """Three phrases have three synonyms each."""
    for phrases in _SYNONYMS:
        pattern = re.compile("|".join(map(re.escape, phrases)), re.IGNORECASE)
        text = pattern.sub(lambda _, phrases=phrases: rng.choice(phrases), text)
    return text


def _identifiers(text: str, rng: random.Random, index: int) -> str:
    """Things have identifiers that change with every look: a cashew (#83ab12)."""
    return re.sub(
        r"\b(an?) ((?:\w+ )*?)(\w+)(?=[.,!?]| on | in | to | and )",
        lambda found: f"{found[0]} (#{rng.getrandbits(24):06x})",
        text,
    )


def _typing(text: str, rng: random.Random, index: int) -> str:
    """Two neighbouring letters change places in 3 % of the words."""

    def swap(found: re.Match[str]) -> str:
        word = found[0]
        if rng.random() > 0.03:
            return word
        place = rng.randrange(len(word) - 1)
        return word[:place] + word[place + 1] + word[place] + word[place + 2 :]

    return re.sub(r"[A-Za-z]{3,}", swap, text)


def _json(text: str, rng: random.Random, index: int) -> str:
    """The text in a JSON envelope, keys in any order, time and latency beside it."""
    fields = {
        "status": "ok",
        "observation": text,
        "meta": {"timestamp": 1.7e9 + rng.randrange(10**7), "latency_ms": rng.randrange(20, 900)},
    }
    return json.dumps(dict(rng.sample(list(fields.items()), 3)), indent=rng.choice((None, 2)))


_NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana", "Ivo", "Jun", "Kira", "Leo")


def _chat(text: str, rng: random.Random, index: int) -> str:
    """An assistant that greets, and somebody who passes by."""
    opening = rng.choice(("Sure!", "Here is what I see.", "Of course, let me look.", "Okay."))
    closing = rng.choice(("What now?", "What would you like to do next?", "Your move."))
    return f"{opening}\n{text}\n{rng.choice(_NAMES)} walks past the window.\n{closing}"


def _notebook(text: str, rng: random.Random, index: int) -> str:
    """The output of a cell: its number, a warning at some line, how long it took, a quote."""
    number = rng.randrange(1, 400)
    warning = (
        f"/usr/lib/env.py:{rng.randrange(10, 900)}: UserWarning: cache of {rng.random():.2e} s"
    )
    quoted = "\n".join(f"> {line}" for line in text.splitlines())
    body = f"{warning}\n{quoted}" if rng.random() < 0.4 else quoted
    result = f"Out[{number}]: <Observation at 0x{rng.getrandbits(44):012x}>"
    return f"In [{number}]: env.look()\n{body}\n{result}"


def _table(text: str, rng: random.Random, index: int) -> str:
    """A Markdown table whose rows are in any order, with a column of scores."""
    rows = [f"| {line} | {rng.random():.2f} |" for line in text.splitlines()]
    rng.shuffle(rows)
    return "\n".join(["| text | score |", "| --- | --- |", *rows])


def _adverbs(text: str, rng: random.Random, index: int) -> str:
    """Words that say nothing are put into sentences."""
    words = ("currently", "simply", "clearly", "just now")

    def add(found: re.Match[str]) -> str:
        return f"{found[0]} {rng.choice(words)}" if rng.random() < 0.3 else found[0]

    return re.sub(r"\b(?:is|are|see)\b", add, text)


def _records(text: str, rng: random.Random, index: int) -> str:
    """Key-value lines in any order, among them a session that lasts as long as a trajectory."""
    lines = [f"line{number}: {line}" for number, line in enumerate(text.splitlines())]
    lines += [f"request: {rng.getrandbits(64):016x}", f"tokens_used: {rng.randrange(200, 9000)}"]
    lines += [f"date: 2025-{rng.randrange(1, 13):02}-{rng.randrange(1, 28):02}T10:00:00Z"]
    rng.shuffle(lines)
    return "\n".join(lines)


def _everything(text: str, rng: random.Random, index: int) -> str:
    """Typing errors and gauges in a JSON envelope."""
    return _json(_gauges(_typing(text, rng, index), rng, index), rng, index)


KINDS: dict[str, Disturb] = {
    "markup": _markup,
    "gauges": _gauges,
    "wording": _wording,
    "identifiers": _identifiers,
    "typing": _typing,
    "json": _json,
    "chat": _chat,
    "notebook": _notebook,
    "table": _table,
    "adverbs": _adverbs,
    "records": _records,
    "everything": _everything,
}
"""Six kinds that broke an earlier way of merging, then six more."""
