"""Where two texts differ."""

from hypothesis import given
from hypothesis import strategies as st

from graphcredit.store.text_diff import compare

TEXTS = st.text(alphabet="ab \n", max_size=40)


def test_only_the_words_that_differ_are_marked():
    difference = compare("You see a red apple here.", "You see a green apple here.")
    # Five of six words are equal in each text.
    assert difference.ratio == 10 / 12
    assert difference.lines == "  You see a \n- red \n+ green \n  apple here."


def test_what_is_equal_is_shortened():
    common = " ".join(str(number) for number in range(100))
    lines = compare(f"{common} x", f"{common} y").lines.split("\n")
    assert lines == ["  0 1 2 3 4 5 6 7  … 92 93 94 95 96 97 98 99 ", "- x", "+ y"]


@given(TEXTS)
def test_a_text_is_wholly_like_itself(text: str):
    difference = compare(text, text)
    assert difference.ratio == 1
    assert all(line.startswith("  ") for line in difference.lines.splitlines())


@given(TEXTS, TEXTS)
def test_likeness_is_a_share(first: str, second: str):
    assert 0 <= compare(first, second).ratio <= 1


def test_long_texts_take_no_longer_than_1500_words_do():
    assert compare("a b " * 10**5, "b a " * 10**5).ratio > 0.9
