"""Text of a log: nothing of it is hidden, obeyed, or read as Markdown; where two texts differ."""

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.store.log_text import isolated, one_line, visible
from graphcredit.store.text_diff import compare
from graphcredit.viewer.widgets.text import code_label, label, visible_cells
from tests.viewer.stores import HOSTILE


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("\x1b[31mred\x07", "␛[31mred␇"),
        ("gnp\u202eexe", "gnp⟨U+202E⟩exe"),
        ("a\u200bb\u2028c\x9bd\x7f", "a⟨U+200B⟩b⟨U+2028⟩c⟨U+009B⟩d␡"),
        ("carriage\rreturn", "carriage␍return"),
        ("half \ud800 pair", "half \ufffd pair"),
        ("an isolate \u2068without end", "an isolate ⟨U+2068⟩without end"),
        ("naïve 日本 👩\u200d🚀", "naïve 日本 👩\u200d🚀"),
    ],
)
def test_control_characters_become_pictures(text: str, seen: str):
    assert visible(text) == seen


@given(st.text())
def test_visible_text_stays_as_it_is(text: str):
    assert visible(visible(text)) == visible(text)


@given(st.text(), st.integers(1, 50))
def test_one_line_is_one_short_line(text: str, length: int):
    line = one_line(text, length)
    assert len(line.strip("\u2068\u2069")) <= length
    assert visible(line) == line
    assert line.splitlines() in ([line], [])


@given(st.text(st.characters(codec="ascii")))
def test_no_punctuation_of_a_label_means_anything(text: str):
    unescaped = re.sub(r"\\.", "", label(text))
    assert not re.search(r"[!-/:-@\[-`{-~]", unescaped)


def test_a_label_is_never_empty_and_never_long():
    assert label(" \n") == "\\-"
    assert len(label(HOSTILE, 40).replace("\\", "")) == 40


def test_cells_become_visible_and_nulls_and_numbers_stay():
    table = pa.table({"name": ["\x1b[2J", None], "number": [1, 2]})
    assert visible_cells(table).to_pydict() == {"name": ["␛[2J", None], "number": [1, 2]}


def test_code_in_a_label_ends_where_the_text_ends():
    assert code_label("go") == "`go`"
    assert code_label("a `b` ``c``") == "``` a `b` ``c`` ```"
    assert code_label("") == "`-`"
    assert len(code_label("x" * 200)) == 82


def test_text_from_right_to_left_does_not_turn_the_numbers_beside_it():
    said = f"step 3: {one_line('افتح الباب')}  (2 → 1)"
    assert said == "step 3: \u2068افتح الباب\u2069  (2 → 1)"
    assert label(said).replace("\\", "") == isolated(" ".join(said.split())) != said
    cut = one_line(f"{one_line('افتح الباب')} and more", 9)
    assert (cut.count("\u2068"), cut.count("\u2069")) == (1, 1)
    assert one_line("go → 1") == "go → 1"


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
