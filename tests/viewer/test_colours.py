"""Marks and text stand out from both backgrounds."""

import pytest

from graphcredit.viewer.config import server_flags
from graphcredit.viewer.widgets.colours import NEUTRAL, diverging, ink, ink_on, sequential

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
