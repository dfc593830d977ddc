"""The file states.toml: its errors name the line, and its patterns take linear time."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.store import create_store
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import OptionError
from graphcredit.store.state_rules.file import parse_state_rules, read_state_rules
from graphcredit.store.state_rules.pattern import compile_path, compile_pattern, compile_words


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[ignore]]\ntxt = "a"', "line 1, [[ignore]] number 1: an entry has no option 'txt'"),
        ('\n[keep]\ntext = "a"', "line 2: keep must be entries [[keep]], in two brackets"),
        ("# x\n\nnoise = 1", "line 3: an entry must start with [[ignore]] or [[keep]]"),
        ('[[keep]]\ntext = "a"\nvalues = "{id}"', "one of field, text, values, words: found text"),
        ("[[ignore]]\n[[keep]]", "line 1, [[ignore]] number 1: an entry must have one of"),
        (
            '[[keep]]\ntext = "a"\n\n[[keep]]\ntext = "{when} b"',
            "line 4, [[keep]] number 2: {when} must be one of {date}",
        ),
        ('[[ignore]]\nvalues = "no"', "values must have a kind of token in braces"),
        ('[[ignore]]\nwords = "a"', "must be a list of texts"),
        ('[[ignore]]\nwords = ["a", "A"]', "two or more different phrases"),
        ('[[ignore]]\nfield = "a..b"', "field must be names with dots between them"),
        ('[[ignore]]\nfield = "**.a.**"', "at most one **"),
        ('[[ignore]]\ntext = " a"', "must not start or end with a blank"),
        ('[[ignore]]\ntext = ""', "must start with a word or a kind of token"),
        ('[[ignore]]\ntext = "{any} a"', "must start with a word or a kind of token"),
        ('[[ignore]]\ntext = "a {any} {any} b"', "must have something between them"),
        ('[[ignore]]\ntext = "a\\nb"', "must be within one line"),
        ('[[ignore]]\ntext = "a {b"', "a brace must be doubled"),
        ("[[ignore]]\ntext = 5", "must be text: got 5"),
        ('[[ignore]]\ntext = "a', "states.toml must be TOML"),
        ('ignore = ["a"]', "an entry must be a table: found 'a'"),
    ],
)
def test_an_error_says_where_and_what(text: str, said: str):
    with pytest.raises(OptionError) as caught:
        parse_state_rules(text, where="states.toml")
    assert said in str(caught.value)
    assert str(caught.value).startswith("states.toml")


def test_no_file_and_an_empty_one_have_no_rules(tmp_path: Path):
    store = create_store(tmp_path / "s")
    assert not read_state_rules(store)
    store.state_rules_path.write_text("# nothing\n")
    assert read_state_rules(store).digest is None


def test_check_reads_the_file_and_knows_its_place(tmp_path: Path):
    store = create_store(tmp_path / "s")
    store.state_rules_path.write_bytes(b"\xef\xbb\xbf[[keep]]\r\ntext = 'a'\r\n")
    assert not check_store(store).violations
    store.state_rules_path.write_bytes(b"[[keep]]\ntext = '\xff'\n")
    (found,) = check_store(store).errors
    assert (found.rule.name, found.file) == ("state_rules", "states.toml")
    assert found.found.startswith("line 2: must be UTF-8")


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("battery at {number} percent", "Battery  at -17.5 percent", ("-17.5",)),
        ("{time} o", "at 12:30 o", ("12:30",)),
        ("on {date}", "on 2024-02-03T10:11:12.5Z!", ("2024-02-03T10:11:12.5Z",)),
        ("id {id}", "id 550e8400-e29b-41d4-a716-446655440000", None),
        ("id {id}", "id deadbeef", ("deadbeef",)),
        ("id {id}", "id dead", None),
        ("a {word} b", "a well-known b", ("well-known",)),
        ("a {number}", "a 83ab12", None),
        ("a {any} z {any}", "a b z c\nd", ("b", "c")),
        ("a {any} z", "a b\nz", None),
        ("ad", "had ads", None),
    ],
)
def test_what_a_pattern_matches(pattern: str, text: str, found: tuple[str, ...] | None):
    match = compile_pattern(pattern).search(text)
    if "550e" in text:
        found = ("550e8400-e29b-41d4-a716-446655440000",)
    assert (match.groups() if match else None) == found


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a {any} a {any} a {any} z", "a " * 50_000),
        ("{id} {any} {number} z", "a-1" * 200_000),
        ("{number} x", "1," * 200_000),
        ("{word} x", "a-" * 200_000),
        ("{id} x", "abcdef-" * 100_000),
    ],
)
def test_no_pattern_runs_away(pattern: str, text: str):
    """With anything to go back over, one of these would take hours."""
    assert compile_pattern(pattern).search(text) is None
    assert compile_path("**.x").fullmatch("a." * 100_000) is None


def test_what_many_phrases_begin_with_is_looked_for_once():
    words = compile_words(tuple(f"meeting room {number}" for number in range(2_000)))
    assert words.pattern.count("meeting") == 1
    assert [match[0] for match in words.finditer("meeting room 12, Meeting  room 2000")] == [
        "meeting room 12"
    ]


_PHRASE = st.lists(st.sampled_from(["a", "ab", "abc", "b", "(", "a-"]), min_size=1, max_size=3)


@given(st.lists(_PHRASE.map(" ".join), min_size=2, max_size=12, unique=True), st.text("ab( -c"))
def test_the_longest_phrase_that_fits_is_taken(phrases: list[str], text: str):
    pieces = [match.span() for match in compile_words(tuple(phrases)).finditer(text)]
    assert pieces == list(_longest(phrases, text))


def _longest(phrases: list[str], text: str) -> Iterator[tuple[int, int]]:
    """Yield where phrases are: the slow twin, which tries each at each place."""
    place = 0
    while place < len(text):
        fits = (_fit(phrase, text, place) for phrase in sorted(phrases, key=len, reverse=True))
        stop = next((stop for stop in fits if stop), None)
        if stop:
            yield place, stop
        place = stop or place + 1


def _fit(phrase: str, text: str, place: int) -> int | None:
    start, end = (r"\b" if letter.isalnum() else "" for letter in (phrase[0], phrase[-1]))
    blanks = "[ \t]+".join(map(re.escape, phrase.split()))
    match = re.compile(start + blanks + end).match(text, place)
    return match and match.end()
