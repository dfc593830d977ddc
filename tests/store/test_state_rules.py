"""The file states.toml: its errors name the line, and its expressions take linear time."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from graphcredit.store import create_store
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import OptionError
from graphcredit.store.state_rules import StateRule, parse_state_rules, read_state_rules


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[[ignore]]\ntxt = "a"',
            "line 1, [[ignore]] number 1: an entry has by, tasks, text, why, not txt",
        ),
        ('\n[keep]\ntext = "a"', "line 2: keep must be entries [[keep]], in two brackets"),
        ("# x\n\nnoise = 1", "line 3: an entry must start with [[ignore]] or [[keep]]"),
        ("[[ignore]]\n[[keep]]", "line 1, [[ignore]] number 1: an entry must have text"),
        ('[[keep]]\ntext = "a"\n\n[[keep]]\ntext = "("', "line 4, [[keep]] number 2: text and by"),
        ('[[ignore]]\ntext = "a"\nby = "\\\\1"', "RE2 accepts: Invalid replacement"),
        ('[[ignore]]\ntext = "a*"', "must not match a text without letters: got 'a*'"),
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


@pytest.mark.parametrize("text", [r"(a|a)*z", r"(\w+\s?)+z", r"(?:a.*){20}z"])
def test_no_expression_runs_away(text: str):
    """With anything to go back over, one of these would take hours."""
    rule = StateRule(text=text)
    long = pa.array(["a " * 50_000])
    assert not pc.match_substring_regex(long, pattern=rule.text)[0].as_py()
