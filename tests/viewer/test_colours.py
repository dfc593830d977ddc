"""Marks and text stand out from both backgrounds, and colours of code lose no character."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.store.log_text import visible
from graphcredit.viewer.chat.runs import runs_of
from graphcredit.viewer.chat.texts import Code, parts_of
from graphcredit.viewer.chat.transcript import transcript
from graphcredit.viewer.config import server_flags
from graphcredit.viewer.steps.chat_data import drawn_messages
from graphcredit.viewer.widgets.colours import NEUTRAL, diverging, ink, ink_on, sequential
from tests.worlds import step_table, trajectory

PAPER = {"light": "#ffffff", "dark": "#171614"}
"""Streamlit's backgrounds."""


def luminance(colour: str) -> float:
    shares = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    red, green, blue = (
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_that_of_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("theme", PAPER)
def test_every_mark_stands_out(theme: str):
    shades = [diverging(step / 20, 1) for step in range(-20, 21)]
    for colour in (*shades, NEUTRAL, "#b8860b"):
        assert contrast(colour, PAPER[theme]) >= 3, colour


def test_words_on_states_can_be_read_and_no_state_has_a_hue():
    for step in range(101):
        colour = sequential(step / 100)
        assert contrast(colour, ink_on(step / 100)) >= 4.5, step
        channels = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
        assert max(channels) - min(channels) <= 12


@pytest.mark.parametrize("theme", PAPER)
def test_quiet_text_can_be_read(theme: str):
    assert contrast(ink(theme), PAPER[theme]) >= 4.5


@pytest.mark.parametrize(("theme", "paper"), [("light", "#ffffff"), ("dark", "#000000")])
def test_links_and_words_on_buttons_can_be_read(theme: str, paper: str):
    flags = server_flags(address="localhost", port=8501)
    settings = dict(flag.removeprefix("--").split("=", 1) for flag in flags)
    assert settings.get(f"theme.{theme}.backgroundColor", paper) == paper
    blue, words = (settings[f"theme.{theme}.{name}Color"] for name in ("primary", "text"))
    assert contrast(blue, paper) >= 4.5
    assert contrast(blue, "#ffffff") >= 4.5
    assert contrast(words, paper) >= 4.5


def _coloured(text: str, language: str) -> list[tuple[str, str]]:
    return list(runs_of(text, (Code(start=0, end=len(text), language=language),)))


def test_code_diffs_and_terminals_have_colours():
    assert _coloured("x = 1  # no", "python") == [
        ("x = ", ""),
        ("1  ", "number"),
        ("# no", "comment"),
    ]
    assert _coloured("-a\n+b", "diff") == [("-a\n", "deleted"), ("+b", "inserted")]
    assert _coloured("x", "a.py") == _coloured("x", "no such language") == [("x", "")]
    terminal = "\x1b[1;31mred\x1b[0m \x1b[38;5;2mg\x1b[48;2;1;2;3mg\x1b[m.\x1b[2J\x1b]0;t\x07"
    assert runs_of(terminal, ()) == (("red ", "red"), ("gg", "green"), (".␛[2J␛]0;t␇", ""))


_MARKS = st.text(alphabet="ab1 \n\r\t#*_`~<>[]()!|-&;:/\\\"'{}=+@\x1b\u202e\u200b")


@given(_MARKS, st.sampled_from(["python", "json", "diff", "pytb", "bash", "html", "a.js"]))
def test_colours_lose_no_character_and_show_every_hidden_one(text: str, language: str):
    for part in (*parts_of(text), *parts_of(f"```{language}\n{text}")):
        runs = runs_of(part.text, part.code)
        if "\x1b[" not in text:
            assert "".join(shown for shown, _ in runs) == visible(part.text)
        assert not {"\x1b", "\u202e", "\u200b"} & {*"".join(shown for shown, _ in runs)}


def test_code_goes_to_the_browser_once():
    rows = trajectory("x", ["A", "*do*", "B"], extra='{"policy": "p"}')
    rows[0]["thought"] = "*why*\n```python\npass\n```"
    table = step_table(rows)
    drawn = drawn_messages(transcript(table), table, step=0, estimator=None)["messages"][1]
    assert drawn["about"] == "*do*"
    assert drawn["parts"][1]["runs"] == [[10, ""], [4, "keyword"], [4, ""]]
