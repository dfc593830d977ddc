"""Text of a log in colours and as Markdown: all of it is there, and it is never more than text."""

from hypothesis import given
from hypothesis import strategies as st

from graphcredit.store.log_text import visible
from graphcredit.viewer.chat.runs import runs_of
from graphcredit.viewer.chat.texts import Code, parts_of
from graphcredit.viewer.chat.transcript import transcript
from graphcredit.viewer.steps.chat_data import drawn_messages
from tests.worlds import step_table, trajectory


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
