"""Kinds of noise that somebody wrote who had not read `--merge segments`, all at once.

They judged versions 4 to 6 of it. Version 7 was made with them in view.
"""

from benchmarks.noise.disturb import Disturb
from benchmarks.noise.strange import around, form

KINDS: dict[str, Disturb] = {
    "axtree": form.axtree,
    "usage": around.usage,
    "tabs": around.tabs,
    "mood": around.mood,
    "turns": around.turns,
    "xmlwrap": form.xmlwrap,
    "thumb": form.thumb,
    "trace": around.trace,
    "budget": around.budget,
    "locale": form.locale,
    "badges": around.badges,
    "quote": around.quote,
    "chose": around.chose,
    "persona": form.persona,
    "daytime": around.daytime,
    "ansi": form.ansi,
    "loglines": form.loglines,
    "variant": form.variant,
}
