"""Kinds with values that last for some looks, or for a whole rollout."""

from __future__ import annotations

import random
import re
import textwrap
from datetime import timedelta
from typing import TYPE_CHECKING

from benchmarks.noise.fresh.draw import START, elapsed, held, life_of

if TYPE_CHECKING:
    from benchmarks.noise.disturb import VisitRandom


_FIRST = [
    "Priya",
    "Tom",
    "Ines",
    "Kofi",
    "Yuki",
    "Omar",
    "Lena",
    "Raj",
    "Sofia",
    "Ben",
    "Anouk",
    "Diego",
    "Mei",
    "Jonas",
    "Amara",
    "Pavel",
    "Ruth",
    "Elif",
    "Noor",
    "Sam",
    "Greta",
    "Hugo",
    "Zoe",
    "Ivan",
]
_LAST = [
    "Adams",
    "Baker",
    "Costa",
    "Diallo",
    "Evans",
    "Fischer",
    "Gupta",
    "Haddad",
    "Ito",
    "Jansen",
    "Kim",
    "Lopez",
    "Moreau",
    "Novak",
]
_STAFF = ("Dana", "Marcus", "Wei", "Olu", "Petra")


def support_chat(text: str, rng: VisitRandom, index: int) -> str:
    """Address the rollout's customer by name, in the words of staff who take turns."""
    life = life_of(rng)
    name = life.choice(_FIRST)
    case = f"{name} {life.choice(_LAST)} · case #{life.randint(10000, 99999)}"
    agent = held(life, index, (3, 6), lambda draw: draw.choice(_STAFF))
    lines = text.split("\n")
    if len(lines) > 1:
        lines[1] = f"{name}, here is what I see: {lines[1]}"
    told = "\n".join(lines).replace("You are carrying", f"By my records {name} is carrying")
    return f"{agent} is helping {case}\n{told}"


_ARMS = (
    ("-= {} =-", "You are carrying", None),
    ("## {}", "Your bag holds", "New: quests for two! Invite a friend and both get a month free."),
    ("{} | Quest Online", "In hand you have", "Members save 10 % this week. See plans."),
)


def experiment_arm(text: str, rng: VisitRandom, index: int) -> str:
    """Show the page as the rollout's arm of an experiment does, at first below a cookie banner."""
    life = life_of(rng)
    title, carrying, banner = life.choice(_ARMS)
    until, partners = life.randint(0, 5), life.choice((112, 348, 791))
    text = re.sub(r"^-= (.*) =-$", lambda found: title.format(found[1]), text, flags=re.MULTILINE)
    lines = [text.replace("You are carrying", carrying)]
    if banner:
        lines.append(banner)
    if index < until:
        lines.insert(
            0, f"We and our {partners} partners use cookies. [Accept all] [Manage choices]"
        )
    return "\n".join(lines)


_LOCALES = (
    ("You are carrying", "on the floor", "%a %d %b %Y, %H:%M GMT", 0),
    ("Du trägst bei dir", "auf dem Boden", "%d.%m.%Y, %H:%M Uhr", 1),
    ("Vous portez", "par terre", "%d/%m/%Y à %Hh%M", 1),
    ("Llevas contigo", "en el suelo", "%d-%m-%Y %H:%M h", -3),
    ("持ち物", "床の上", "%Y年%m月%d日 %H:%M", 9),
)


def half_translated(text: str, rng: VisitRandom, index: int) -> str:
    """Translate only the fixed phrases to the rollout's language, and show its local time."""
    life = life_of(rng)
    carrying, floor, form, hours = life.choice(_LOCALES)
    seconds = life.randint(0, 20 * 86400) + elapsed(life, index, 5, 240)
    now = START + timedelta(hours=hours, seconds=seconds)
    text = text.replace("You are carrying", carrying).replace("on the floor", floor)
    return f"{text}\n{now.strftime(form)}"


_WEATHER = (
    "Rain drums on the roof.",
    "Somewhere a clock ticks.",
    "The wind has dropped.",
    "You hear distant laughter.",
    "Sunlight falls through a crack.",
    "",
)


def ambience(text: str, rng: VisitRandom, index: int) -> str:
    """Add a sentence of weather to the room's description, which stays for some looks."""
    sentence = held(life_of(rng), index, (2, 5), lambda draw: draw.choice(_WEATHER))
    lines = text.split("\n")
    at = min(1, len(lines) - 1)
    lines[at] = f"{lines[at]} {sentence}".rstrip()
    return "\n".join(lines)


_PLANS = (
    "explore what I have not seen yet, then act",
    "follow the task word by word",
    "avoid repeating actions without effect",
    "try the cheapest action first",
)


def scratchpad(text: str, rng: VisitRandom, index: int) -> str:
    """Put the agent's memory before the text: the last action, a plan of some looks, a budget."""
    life, budget = life_of(rng), random.Random(rng.rollout.getrandbits(64))
    total = life.choice((32_000, 128_000, 200_000))
    plan = held(life, index, (2, 6), lambda draw: draw.choice(_PLANS))
    used = elapsed(budget, index, 350, 1900)
    last = f"I just did `{rng.action_before}`." if rng.action_before else "Nothing done yet."
    memory = f"<memory>\nTurn {index + 1}. {last} Plan: {plan}.\n</memory>"
    return f"{memory}\n{text}\n[{used:,} of {total:,} tokens used, {used / total:.0%}]"


_THEMES = (("1;36", "33"), ("1;32", "35"), ("7", "4"), (None, None))


def resized_terminal(text: str, rng: VisitRandom, index: int) -> str:
    """Print to a terminal: the window is resized at times, colours and host are the rollout's."""
    life = life_of(rng)
    title, value = life.choice(_THEMES)
    host = f"player@{life.choice(('atlas', 'borg', 'ws'))}-{life.randint(1, 40):02}"
    width = held(life, index, (3, 6), lambda draw: draw.choice((40, 56, 72, 80, 120)))

    def coloured(line: str, code: str | None) -> str:
        return f"\x1b[{code}m{line}\x1b[0m" if code else line

    lines = text.split("\n")
    wrapped = [
        textwrap.fill(
            line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
        for line in lines
    ]
    wrapped[0], wrapped[-1] = coloured(wrapped[0], title), coloured(wrapped[-1], value)
    return "\n".join((f"{host}:~/quest$ {rng.action_before or './quest'}", *wrapped))
