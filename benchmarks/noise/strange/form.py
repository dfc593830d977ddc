"""Noise in the form of a text: wrappers, layouts, formats, and what is put into its lines."""

import base64
import html
import re

from benchmarks.noise.disturb import VisitRandom


def axtree(text: str, rng: VisitRandom, index: int) -> str:
    """An accessibility tree: identifiers grow from a random base; tabs, attributes."""
    number = rng.randrange(10, 4000)
    url = f"https://play.example.org/s/{rng.getrandbits(40):010x}"
    nodes = [f"RootWebArea 'Adventure' focused: True url='{url}'"]
    for line in text.splitlines():
        number += rng.randrange(1, 9)
        if not line:
            continue
        role = "heading" if line.startswith("-=") else "StaticText"
        visible = ", visible" if rng.random() < 0.7 else ""
        nodes.append(f"\t[{number}] {role} '{line}'{visible}")
        if rng.random() < 0.25:
            number += 1
            expanded = rng.choice(("True", "False"))
            nodes.append(f"\t\t[{number}] button '' hasPopup: menu expanded: {expanded}")
    return "\n".join(nodes)


def xmlwrap(text: str, rng: VisitRandom, index: int) -> str:
    """An XML wrapper whose lines are elements with times and sources."""
    base = 1700000000 + rng.rollout.randrange(10**7) + 13 * index

    def element(number: int, line: str) -> str:
        source = rng.choice(("env", "engine", "narrator"))
        time = f"{base + rng.random():.3f}"
        return f'  <line n="{number}" src="{source}" t="{time}">{html.escape(line)}</line>'

    lines = "\n".join(element(number, line) for number, line in enumerate(text.splitlines(), 1))
    opening = f'<observation worker="w{rng.rollout.randrange(64)}" seq="{index}">'
    return f'<?xml version="1.0"?>\n{opening}\n{lines}\n</observation>'


def thumb(text: str, rng: VisitRandom, index: int) -> str:
    """A thumbnail in base64 behind the first line."""
    head, *rest = text.splitlines() or [""]
    data = base64.b64encode(rng.randbytes(rng.randrange(60, 130))).decode()
    return "\n".join([head, f"![screenshot](data:image/png;base64,{data})", *rest])


_LOCALES = ("en", "de", "fr")
_MARKS = {"en": ",.", "de": ".,", "fr": "\u00a0,"}
_LABELS = {"en": "Balance", "de": "Kontostand", "fr": "Solde"}


def locale(text: str, rng: VisitRandom, index: int) -> str:
    """A date and money in the format of a locale that changes at times."""
    where = rng.rollout.choice(_LOCALES) if rng.random() < 0.8 else rng.choice(_LOCALES)
    day, month = rng.randrange(1, 29), rng.randrange(1, 13)
    dates = {
        "en": f"{month:02}/{day:02}/2025",
        "de": f"{day:02}.{month:02}.2025",
        "fr": f"{day:02}-{month:02}-2025",
    }
    amount = f"{rng.uniform(10, 9999):,.2f}".translate(str.maketrans(",.", _MARKS[where]))
    money = f"${amount}" if where == "en" else f"{amount} €"
    return f"{dates[where]} | {_LABELS[where]}: {money}\n{text}"


_NAMES = (
    *("Aldric", "Brunhild", "Caius", "Delphine", "Edda"),
    *("Fenwick", "Gisela", "Hector", "Isolde", "Jarl"),
)
_TRADES = ("knight", "thief", "healer", "bard", "ranger", "monk")


def persona(text: str, rng: VisitRandom, index: int) -> str:
    """A persona for a rollout, who is spoken to in the middle of a sentence."""
    name, trade = rng.rollout.choice(_NAMES), rng.rollout.choice(_TRADES)
    text = re.sub(
        r"\b([Yy]ou) (are|see|can|make)\b",
        lambda found: f"{found[1]}, {name} the {trade}, {found[2]}",
        text,
        count=1,
    )
    return f"{text}\nYour fate awaits, {name}."


def ansi(text: str, rng: VisitRandom, index: int) -> str:
    """Words in 256 colours, a title sequence and moves of the cursor."""

    def paint(found: re.Match[str]) -> str:
        if rng.random() >= 0.15:
            return found[0]
        return f"\x1b[38;5;{rng.randrange(256)}m{found[0]}\x1b[0m"

    title = f"\x1b]0;game {rng.getrandbits(16):04x}\x07"
    moves = f"\x1b[2J\x1b[{rng.randrange(1, 40)};1H"
    return title + moves + re.sub(r"\w+", paint, text) + "\x1b[K"


def loglines(text: str, rng: VisitRandom, index: int) -> str:
    """Each line is that of a log: time, level, module and line number; at times a heartbeat."""
    passed = rng.rollout.randrange(36_000_000, 60_000_000) + 4100 * index
    lines: list[str] = []
    for line in text.splitlines():
        passed += rng.randrange(1, 60)
        stamp = _stamp(passed)
        level = rng.choice(("INFO", "INFO", "DEBUG"))
        lines.append(f"{stamp} {level} engine.render:{rng.randrange(40, 60)} - {line}")
        if rng.random() < 0.2:
            heart = f"net.heartbeat:{rng.randrange(9, 99)} - rtt={rng.uniform(2, 80):.1f}ms"
            lines.append(f"{stamp} DEBUG {heart} queue={rng.randrange(5)}")
    return "\n".join(lines)


def _stamp(passed: int) -> str:
    """Return a time, given milliseconds since midnight."""
    seconds, rest = divmod(passed, 1000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"2025-03-01T{clock}.{rest:03}Z"


def variant(text: str, rng: VisitRandom, index: int) -> str:
    """A test of three layouts, dealt for a rollout, which have other labels and orders."""
    lines = [line for line in text.splitlines() if line]
    layout = rng.rollout.randrange(3)
    if layout == 0:
        return "\n".join(["Where you are", *lines, "-- layout A --"])
    if layout == 1:
        return "\n".join([*(f"▸ {line}" for line in lines[1:]), f"Scene: {lines[0]}"])
    items = [f"{place}) {line}" for place, line in enumerate(lines[1:], 1)]
    return "\n".join([f"# {lines[0]}", "", *items, "(beta)"])
