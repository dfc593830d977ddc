"""What states and actions are called, on texts written by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.store.log_text import visible
from graphcredit.viewer.graph.state_names import TITLE, TOLD, action_words, state_names
from tests.viewer.graphs import graph_of


def _named(texts: list[str], actions: dict[str, str] | None = None, path: str = "") -> list[str]:
    path = path or " ".join(map(str, range(len(texts) + 1)))
    graph = graph_of(
        path, goal=len(texts), texts=dict(enumerate(texts)), actions=actions or {"0 1": "go"}
    )
    names = state_names(graph)
    assert names[len(texts)].line == "GOAL"
    return [names[number].line for number in range(len(texts))]


def test_a_place_is_its_first_line_and_what_others_like_it_do_not_have():
    assert _named(
        [
            "-= Bar =-\nHowever, the gate is closed. You carry a lamp.",
            "-= Bar =-\nThe gate is open. You carry a lamp.",
            "-= Hall =-\nThe gate is closed.",
        ]
    ) == ["Bar · However, the gate is clos…", "Bar · The gate is open", "Hall"]


def test_rows_of_a_board_and_flags_are_no_words_and_the_name_of_a_page_is_one():
    assert _named(["_ _ _ _ X\n_ _ P _ _", "_ _ _ _ X\n_ _ _ _ P"]) == ["start", "after go"]
    pages = [
        "Tab 0 (current): Account | Storefront of Lumen",
        "Tab 0 (current): Search | Storefront",
    ]
    named = _named(pages, {"0 1": 'type({"enter": true, "id": 14, "text": "shoes"})'})
    assert named[1] == "type 14 shoes · Tab 0 (current): Search |…"


def test_what_is_rarest_is_told_first():
    texts = ["Bar\nA table", "Bar\nA table\nA lamp", "Bar\nA table\nA lamp\nA sword"]
    assert _named(texts) == ["Bar", "Bar · A lamp", "Bar · A sword · A lamp"]


def test_a_result_is_told_by_the_tool_that_gave_it_and_what_it_gave():
    names = _named(
        [
            "Hi! My order is late.",
            '{"order_id": "O1", "items": 2, "owner": {"name": "Ada"}}',
            '[{"day": "Mon", "price": 3}, {"day": "Tue", "price": 4}]',
            "Error: no such flight",
        ],
        {
            "0 1": 'get_order({"order_id": "O1", "deep": true})',
            "1 2": 'search({"to": "JFK"})',
            "2 3": 'book({"flights": [{"number": 4}]})',
        },
    )
    assert names == [
        "Hi! My order is late",
        'get_order O1 · "order_id": "O1"',
        'search JFK · "day": "Mon" · "price": 3',
        "book · Error: no such flight",
    ]


def test_pictures_are_told_by_what_led_there_most_often():
    boards = ["# #\n_ P", "# #\nP _"]
    assert _named(boards, {"0 1": "left", "1 0": "right"}, "0 1 0 1 2") == ["start", "after left"]


def test_states_of_one_tool_are_told_apart_by_file_lines_exit_code_and_result():
    edit = '{"command": "str_replace", "path": "/testbed/src/PATH", "old_str": "def f(x)"}'
    view = '{"command": "view", "path": "/testbed/src/core/fields.py", "view_range": [LINES]}'
    shell = '{"command": "cd /testbed && python -m pytest -q tests/test_fields.py"}'
    tool, prose = "str_replace_editor(JSON)", "I run it.\n```bash\nls -la src/core/fields.py\n```"
    actions = [
        tool.replace("JSON", edit.replace("PATH", "core/fields.py")),
        tool.replace("JSON", edit.replace("PATH", "core/orders.py")),
        tool.replace("JSON", view.replace("LINES", "1, 40")),
        tool.replace("JSON", view.replace("LINES", "40, 80")),
        *[f"bash({shell})"] * 3,
        prose,
    ]
    ran = "<returncode>CODE</returncode>\n<output>.F    [100%]\nFAILED TEST\n</output>"
    texts = [
        "Mend f.",
        *["The file has been edited."] * 2,
        *["The file:\ndef f(x)"] * 2,
        ran.replace("CODE", "1").replace("TEST", "test_a"),
        ran.replace("CODE", "1").replace("TEST", "test_b"),
        ran.replace("CODE", "0").replace("\nFAILED TEST", ""),
        "<returncode>0</returncode>\n<output></output>",
    ]
    led = {f"{at} {at + 1}": action for at, action in enumerate(actions)}
    assert _named(texts, led) == [
        "Mend f",
        "str_replace fields.py… · The file has been edited",
        "str_replace orders.py… · The file has been edited",
        "view fields.py 1-40 · The file: · def f(x)",
        "view fields.py 40-80 · The file: · def f(x)",
        "python -m pytest -q t… · FAILED test_a",
        "python -m pytest -q t… · FAILED test_b",
        "python -m pytest -q t… · <returncode>0</returncode>",
        "ls -la fields.py · <returncode>0</returncode>",
    ]


def test_equal_texts_have_nothing_to_tell():
    assert _named(["Bar", "Bar"]) == ["Bar", "Bar"]
    assert _named(["", ""], {"0 1": ""}) == ["start", "start"]


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("go  north", "go north"),
        ('get({"id": 7})', "get 7"),
        ("get({})", "get"),
        ("get({broken})", "get({broken})"),
        ('say({"a": ["x"], "b": "y"}) twice', "say y"),
    ],
)
def test_a_call_is_the_tool_and_its_first_value(action: str, expected: str):
    assert action_words(action) == expected


@given(texts=st.lists(st.text(max_size=80), min_size=1, max_size=4), action=st.text(max_size=40))
def test_any_text_gives_short_visible_names(texts: list[str], action: str):
    graph = graph_of(
        " ".join(map(str, range(len(texts) + 1))),
        goal=len(texts),
        texts=dict(enumerate(texts)),
        actions={f"{number} {number + 1}": action for number in range(len(texts))},
    )
    for name in state_names(graph).values():
        assert len(name.title) <= TITLE
        assert len(name.told) <= TOLD
        assert visible(name.line) == name.line
