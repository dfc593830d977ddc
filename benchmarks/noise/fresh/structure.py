"""Kinds that change the structure around the text, too."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from benchmarks.noise.fresh.draw import START, among, hexadecimal

if TYPE_CHECKING:
    from benchmarks.noise.disturb import VisitRandom


def accessibility_tree(text: str, rng: VisitRandom, index: int) -> str:
    """Show the text as the accessibility tree of a browser's page, with advertisements."""
    node = rng.randint(20, 4000)
    rows = [f"Tab {rng.randint(0, 3)} (current): Quest Online", ""]
    rows.append(f"[{node}] RootWebArea 'Quest Online' focused: True")
    parts = [f"StaticText {line!r}" for line in text.split("\n")]
    parts[0] = parts[0].replace("StaticText", "heading", 1)
    offers = [
        f"link 'Sponsored: {rng.randint(10, 70)} % off {what}' url: /ad?c={hexadecimal(rng, 8)}"
        for what in rng.sample(("headphones", "hotel stays", "running shoes", "VPN plans"), 2)
    ]
    widgets = ["button 'Scroll to top'", "img 'avatar'", "textbox 'Search' required: False"]
    added = rng.sample(offers + widgets, rng.randint(1, 4))
    for part in among(parts, rng, added).split("\n"):
        node += rng.randint(1, 9)
        rows.append(f"\t[{node}] {part}")
    return "\n".join(rows)


def notifications(text: str, rng: VisitRandom, index: int) -> str:
    """Let up to three notifications of a desktop come between the lines."""
    who = rng.choice(("Mira", "Tobias", "Chen", "Aisha", "Lukas", "Ops bot"))
    clock = f"{rng.randint(7, 19)}:{rng.randint(0, 59):02}"
    forms = (
        f"🔔 Slack · #general · {who}: anyone up for lunch at {clock}?",
        f"📧 New mail ({rng.randint(1, 40)} unread) from {who}: "
        f"Re: invoice {rng.randint(10_000, 99_999)}",
        f"📅 Reminder: stand-up in {rng.choice((5, 10, 15))} minutes ({clock})",
        f"🔋 Battery at {rng.randint(6, 99)} %, {rng.choice(('charging', 'not charging'))}",
        f"⬇️ Update {rng.randint(100, 140)}.0.{rng.randint(1000, 7000)} is ready to install",
        f"<system-reminder>The file notes-{hexadecimal(rng, 4)}.md was changed by {who}."
        "</system-reminder>",
    )
    shown = rng.sample(forms, rng.choice((0, 1, 1, 2, 3)))
    return among(text.split("\n"), rng, shown)


def out_of_order_log(text: str, rng: VisitRandom, index: int) -> str:
    """Deliver the lines as numbered log entries, some of them twice or after the next one."""
    number, second = rng.randint(1000, 99000), rng.uniform(0, 86000)
    entries = []
    for line in text.split("\n"):
        number += 1
        second += rng.uniform(0, 0.02)
        at = START + timedelta(seconds=second)
        entries.append(f"{at:%H:%M:%S.%f} seq={number} stdout | {line}")
    for place in range(len(entries) - 1):
        if rng.random() < 0.3:
            entries[place], entries[place + 1] = entries[place + 1], entries[place]
    again = [entry for entry in entries if rng.random() < 0.2]
    for entry in again:
        entries.insert(rng.randint(entries.index(entry) + 1, len(entries)), entry)
    return "\n".join(entries)


_MISREAD = {"l": "1", "o": "0", "i": "l", "m": "rn", "e": "c", "a": "s", "n": "b", "t": "r"}


def typing_errors(text: str, rng: VisitRandom, index: int) -> str:
    """Misspell up to three long words in the middle, as fingers or a scanner do."""
    places = [found.span() for found in re.finditer(r"\b[a-z]{6,}\b", text)]
    for start, end in sorted(rng.sample(places, min(len(places), rng.randint(0, 3))), reverse=True):
        at = rng.randint(start + 1, end - 3)
        here, after = text[at], text[at + 1]
        wrong = rng.choice((after + here, here + here + after, _MISREAD.get(here, here) + after))
        text = text[:at] + wrong + text[at + 2 :]
    return text


def folded_lines(text: str, rng: VisitRandom, index: int) -> str:
    """Cut long lines as a tool's output is cut, and give the rest below under a reference."""
    limit = rng.choice((48, 60, 72, 80, 100))
    lines, rests = [], []
    for line in text.split("\n"):
        if len(line) <= limit + 24:
            lines.append(line)
            continue
        reference, cut = hexadecimal(rng, 6), limit - rng.randint(0, 12)
        lines.append(f"{line[:cut]}… [+{len(line) - cut} chars, ref {reference}]")
        rests.append(f"[ref {reference}] …{line[cut:]}")
    return "\n".join((*lines, *rests))
