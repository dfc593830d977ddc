"""A trajectory as a conversation."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.viewer.chat.logged import kind_of, parts_of_message
from graphcredit.viewer.chat.texts import Part, calls_of, parts_of, pretty_json
from graphcredit.viewer.chat.transcript import ShownMessage, transcript
from graphcredit.viewer.steps import chat_data
from tests.worlds import step_table, trajectory

_NAMES = st.sampled_from(["role", "content", "type", "text", "name", "tool_calls", "function"])


def _told(messages: list[ShownMessage]) -> list[tuple[str, int, list[str]]]:
    return [(m.speaker, m.step, [part.text for part in m.parts]) for m in messages]


def imported() -> list[dict[str, Any]]:
    """Return two steps as `graphcredit import` writes them."""
    system = {"role": "system", "content": "# Rules\nBe *brief*."}
    user = {"role": "user", "content": "Find a flight."}
    call = {"id": "c1", "function": {"name": "search", "arguments": '{"to": "SEA"}'}}
    acting = {"role": "assistant", "content": "I look.", "tool_calls": [call]}
    found = {"role": "tool", "name": "search", "content": '{"flights": ["A1"]}'}
    bye = {"role": "user", "content": "Thanks."}
    steps = trajectory("x", ["s", 'search({"to":"SEA"})', "t", "A1 it is.", "[end: success]"])
    steps[0] |= {"thought": "I look.", "extra": {"seen": [system, user], "message": acting}}
    answer = {"role": "assistant", "content": "A1 it is."}
    steps[1]["extra"] = {"seen": [found], "message": answer, "after": [bye]}
    return [row | {"extra": json.dumps(row["extra"])} for row in steps]


def test_an_imported_log_is_told_by_its_messages():
    assert _told(transcript(step_table(imported()))) == [
        ("System", 0, ["# Rules\nBe *brief*."]),
        ("User", 0, ["Find a flight."]),
        ("Agent", 0, ["I look.", 'to: "SEA"']),
        ("Result of search", 1, ['{\n  "flights": [\n    "A1"\n  ]\n}']),
        ("Agent", 1, ["A1 it is."]),
        ("User", 1, ["Thanks."]),
    ]


def test_any_other_log_is_told_by_its_columns():
    steps = trajectory("x", "A a B b C", invalid=(1,), extra='{"policy": "random"}')
    steps[0] |= {"observation": "You are at A.", "thought": "Why not?"}
    messages = transcript(step_table(steps))
    assert _told(messages) == [
        ("Environment", 0, ["You are at A."]),
        ("Agent", 0, ["Why not?", "a"]),
        ("Environment", 1, ["B"]),
        ("Agent, refused by the environment", 1, ["b"]),
        ("Environment", 1, ["C"]),
    ]
    assert [m.is_step for m in messages] == [False, True, False, True, False]


def test_a_message_of_ones_own_in_extra_does_not_hide_what_was_seen():
    steps = trajectory("x", "A a B", extra='{"message": {"role": "assistant", "content": "hm"}}')
    assert _told(transcript(step_table(steps))) == [
        ("Environment", 0, ["A"]),
        ("Agent", 0, ["a"]),
        ("Environment", 0, ["B"]),
    ]


def test_what_stands_between_fences_or_in_columns_is_code():
    text = "Run **this**:\n```sh\nls -l\n```\nand see\nit."
    assert [(p.text, p.is_code) for p in parts_of(text)] == [
        ("Run **this**:", False),
        ("```sh\nls -l\n```", True),
        ("and see\nit.", False),
    ]
    table = "name    size\nroot    4096"
    assert [p.is_code for p in parts_of(table)] == [True]
    assert [p.is_code for p in parts_of("#####\n#P_G#\n#####")] == [True]
    assert [p.is_code for p in parts_of("~~~\nnever closed")] == [True]
    assert [p.is_code for p in parts_of("@@ -1 +1 @@\n-a\n+b")] == [True]
    assert parts_of("\x1b[1;31mred\x1b[0m \x1b[2J") == (Part(text="red \x1b[2J", is_code=True),)


@given(st.text(alphabet="ab \n`~*#\r\u2028"))
def test_no_line_of_a_text_is_lost(text: str):
    shown = "\n".join(part.text for part in parts_of(text)).split("\n")
    wanted = [line for line in text.replace("\r\n", "\n").split("\n") if line.strip()]
    assert [line for line in shown if line.strip()] == wanted


def test_the_calls_of_an_action_are_listed_and_other_text_is_none():
    action = 'python({"code": "a = 1\\nb = 2", "n": 3})\nstop({})'
    assert calls_of(action) == [
        Part(text="code: \na = 1\nb = 2\nn: 3", title="Calls python", is_code=True),
        Part(text="", title="Calls stop", is_code=True),
    ]
    assert calls_of("say(hello)") == calls_of("go east") == calls_of("f([1])") == []


@pytest.mark.parametrize(
    ("message", "kind", "text"),
    [
        ({"from": "human", "value": "hi"}, "user", "hi"),
        ({"type": "function_call_output", "output": "42"}, "result", "42"),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, "b"]}, "user", "a\nb"),
        ({"observation": "run", "content": "done"}, "result", "done"),
        ({"type": "ai", "content": "yes"}, "agent", "yes"),
        ({"role": "tool", "content": ""}, "result", None),
        ({"role": "user", "picture": 1}, "user", '{\n  "role": "user",\n  "picture": 1\n}'),
        ({"role": "user", "content": [{"image": 1}]}, "user", None),
        (7, "user", "7"),
    ],
)
def test_messages_of_many_formats_are_read(message: Any, kind: str, text: str | None):
    parts = parts_of_message(message)
    assert kind_of(message) == kind
    if message == {"role": "user", "content": [{"image": 1}]}:
        assert json.loads(parts[0].text) == message
    else:
        assert [part.text for part in parts] == ([] if text is None else [text])


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(_NAMES | st.text(), inner),
)


@given(_JSON, _JSON)
def test_any_extra_is_told(seen: Any, message: Any):
    extra = json.dumps({"seen": seen, "message": message, "after": [message]})
    table = step_table(trajectory("x", "A a B", extra=extra))
    data = chat_data.drawn_messages(transcript(table), table, step=0, estimator=None)
    (own,) = (told for told in data["messages"] if "step" in told)
    assert own["parts"][-1]["text"] == "a"


def test_what_is_nested_too_deeply_says_so():
    deep: Any = "bottom"
    for _ in range(5000):
        deep = [deep]
    (part,) = parts_of_message({"role": "user", "content": deep})
    assert "nested too deeply" in part.text


def test_calls_in_the_prompt_are_shown():
    call = {"function": {"name": "look", "arguments": '{"at": "it"}'}}
    shown = parts_of_message({"role": "assistant", "content": None, "tool_calls": [call, "odd"]})
    assert [(p.title, p.text) for p in shown] == [
        ("Calls look", 'at: "it"'),
        ("Calls a tool", '"odd"'),
    ]


def test_the_texts_of_other_steps_are_cut_when_a_conversation_is_long(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(chat_data, "MOST_CHARACTERS", 50)
    monkeypatch.setattr(chat_data, "CUT", 5)
    table = step_table(trajectory("x", ["A" * 20, "a" * 20, "B" * 20, "b", "C"]))
    data = chat_data.drawn_messages(transcript(table), table, step=1, estimator=None)
    texts = [(m["parts"][0]["text"], m["parts"][0]["numLeft"]) for m in data["messages"]]
    assert texts == [("AAAAA", 15), ("aaaaa", 15), ("B" * 20, 0), ("b", 0), ("C", 0)]


def test_a_long_text_that_is_told_again_says_where_it_was_told_first():
    rules = {"role": "system", "content": "rule " * 50}
    steps = trajectory("x", "A a B b C")
    for index, row in enumerate(steps):
        message = {"role": "assistant", "content": "ok"}
        row["extra"] = json.dumps(
            {"seen": [rules, {"role": "user", "content": "hi"}], "message": message}
        )
        row["step_index"] = index
    messages = [m for m in transcript(step_table(steps)) if not m.is_step]
    assert [m.same_as for m in messages] == [None, None, 0, None]


def test_crlf_is_a_line_end_and_json_has_real_ones():
    (part,) = parts_of("a\r\nb")
    assert part.text == "a\nb"
    assert pretty_json('{"a": "x\\r\\ny \\"q\\" \\\\n"}') == '{\n  "a": "x\n    y \\"q\\" \\\\n"\n}'


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ({"role": "tool", "content": "fine"}, False),
        ({"role": "tool", "content": "x", "is_error": True}, True),
        ({"role": "user", "content": [{"type": "tool_result", "is_error": True}]}, True),
        ({"role": "tool", "content": "x", "extra": {"returncode": 2}}, True),
        ({"role": "tool", "content": "x", "exit_code": 0, "error": None}, False),
        ({"role": "tool", "content": "NameError: x"}, True),
        ({"role": "tool", "content": "No errors: fine"}, False),
        ({"role": "assistant", "content": "Error: x"}, False),
    ],
)
def test_errors_of_tools_are_marked(message: Any, wanted: bool):
    extra = json.dumps({"seen": [message], "message": {"role": "assistant"}})
    first = transcript(step_table(trajectory("x", "A a B", extra=extra)))[0]
    assert first.is_error is wanted
