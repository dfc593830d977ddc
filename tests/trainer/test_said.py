"""What is trained is what was said: ends, cuts, arguments, and turns in linear time."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcredit.trainer.messages import sequences
from graphcredit.trainer.messages.tools import tools_of
from tests.examples import examples
from tests.trainer.models import CHATML, MARKED, chat_tokenizer
from tests.trainer.test_messages import CALL, EAST, HALL, KITCHEN, OUT, row, said, shown, tokenised
from tests.trainer.test_template_families import ALTERNATING, FORGETFUL

TAGS = ["</tool_call>", "</think>", "<|user|>", "<|observation|>"]
GLM = (
    "{% for m in messages %}{% if m.role == 'tool' %}<|observation|>{{ m.content }}"
    "{% elif m.role == 'user' %}<|user|>\n{{ m.content }}{% else %}<|assistant|>{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
"""A turn ends where the next one begins."""

THINKS = CHATML.replace(
    "{{ m.content }}",
    "{% if m.role == 'assistant' and '</think>' not in m.content %}<think>\n\n</think>\n\n"
    "{% endif %}{{ m.content }}",
)
CALLED = said("assistant", "", tool_calls=[CALL])


def saved(path: Path, template: str) -> Path:
    """Write what `tokenised` does not: added tokens, and those that a sampler stops at."""
    tokenizer = chat_tokenizer(template)
    tokenizer.add_tokens(TAGS)
    ids: Any = tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|user|>", "<|observation|>"])
    path.mkdir(exist_ok=True)
    (path / "generation_config.json").write_text(json.dumps({"eos_token_id": ids}))
    return path


def answers(path: Path, template: str, *rows: dict[str, Any]) -> list[str]:
    made, faults = tokenised(saved(path, template), template, *rows, added=TAGS)
    assert not faults
    return [text for each in made for text in shown(each, TAGS)[1::2]]


@pytest.mark.parametrize("template", [CHATML, MARKED], ids=["compared", "marked"])
@pytest.mark.parametrize("text", ["", "x</tool_call>\n", "<think>\n\n</think>\n\n", "a</think>"])
def test_an_answer_ends_with_the_token_of_the_template(tmp_path: Path, template: str, text: str):
    assert answers(tmp_path, template, row(0, said("assistant", text), HALL)) == [
        f"{text}<|im_end|>"
    ]


def test_where_the_next_turn_ends_an_answer_its_token_is_said(tmp_path: Path):
    """As GLM's samplers stop: after a call at the result, after a text at the user."""
    rows = row(0, CALLED, HALL), row(1, EAST, said("tool", "a door")), row(2, OUT, KITCHEN)
    call = '<tool_call>{"name": "f", "arguments": {"b": 1, "a": 2}}</tool_call>'
    assert answers(tmp_path, GLM, *rows) == [
        f"{call}<|observation|>",
        "go east<|user|>",
        "go out<|user|>",
    ]


def cut(number: int, message: Any, *seen: Any) -> dict[str, Any]:
    extra = {"message": message, "seen": list(seen), "cut": True}
    return row(number, message, extra=json.dumps(extra))


@pytest.mark.parametrize(
    ("template", "message", "text"),
    [
        (CHATML, said("assistant", "a cut answ"), "a cut answ"),
        (MARKED, said("assistant", "a cut answ"), "a cut answ"),
        (THINKS, said("assistant", "<think>so long"), "<think>so long"),
        (THINKS, said("assistant", "a cut"), "<think>\n\n</think>\n\na cut"),
        (FORGETFUL, said("assistant", "", reasoning_content="so long"), "<think>\nso long"),
        (GLM, said("assistant", "a cut"), "a cut"),
        (
            CHATML.replace("c.function | tojson", "c.function.name ~ c.function.arguments"),
            said("assistant", "", tool_calls=[{"function": {"name": "f", "arguments": '{"a'}}]),
            '<tool_call>f{"a',
        ),
    ],
)
def test_an_answer_that_was_cut_ends_with_what_was_said(
    tmp_path: Path, template: str, message: Any, text: str
):
    assert answers(tmp_path, template, cut(0, message, HALL)) == [text]


def test_a_cut_answer_is_ended_in_the_prompts_after_it(tmp_path: Path):
    rows = cut(0, EAST, HALL), row(1, OUT, KITCHEN)
    ((sequence,), _) = tokenised(tmp_path, CHATML, *rows)
    _, first, seen, last = shown(sequence)
    assert (first, last) == ("go east", "go out<|im_end|>")
    assert seen.startswith("<|im_end|>\n<|im_start|>user\nkitchen")


def test_what_strict_templates_lack_within_a_conversation_is_the_users(tmp_path: Path):
    rule, late = said("system", "Go."), said("system", "Late.")
    first = "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
    strict = f"{first}{{{{ raise_exception('first') }}}}{{% endif %}}{{% endfor %}}{CHATML}"
    rows = row(0, EAST, rule, HALL), row(1, OUT, late, KITCHEN), row(2, EAST, late)
    (sequence,), faults = tokenised(tmp_path / "1", strict, *rows)
    prompts = shown(sequence)[0::2]
    assert not faults
    assert prompts[0].startswith("<|im_start|>system\nGo.<|im_end|>")
    assert "user\nLate.\n\nkitchen<|im_end|>" in prompts[1]
    assert "user\nLate.<|im_end|>" in prompts[2]
    (sequence,), faults = tokenised(tmp_path / "2", ALTERNATING, row(0, EAST, HALL), row(1, OUT))
    assert not faults
    assert "<|im_start|>user\n<|im_end|>" in shown(sequence)[2]


SCHEMA = {"type": "object", "properties": {"at": {"type": "integer"}}}
GEMINI = {"type": "OBJECT", "properties": {"at": {"type": "INTEGER"}}}
OPENAI = {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}
NAMED = {"name": "f", "description": "d"}


@pytest.mark.parametrize(
    "log",
    [
        {"tools": [OPENAI]},
        {"tools": json.dumps([OPENAI])},
        {"functions": [{**NAMED, "parameters": SCHEMA}]},
        {"tools": [{**NAMED, "input_schema": SCHEMA}]},
        {"tools": [{"functionDeclarations": [{**NAMED, "parameters": GEMINI}]}]},
        {"config": {"tools": [{"function_declarations": [{**NAMED, "parameters": GEMINI}]}]}},
        {"toolConfig": {"tools": [{"toolSpec": {**NAMED, "inputSchema": {"json": SCHEMA}}}]}},
        {"request": {"tools": [{**NAMED, "inputSchema": SCHEMA}]}},
    ],
)
def test_tools_of_every_dialect_are_openais_functions(log: Any):
    assert tools_of(log) == [OPENAI]


@pytest.mark.parametrize("lacks", [{}, {"description": None}])
def test_a_tool_without_a_description_has_an_empty_one_where_the_template_needs_one(
    tmp_path: Path, lacks: Any
):
    """gpt-oss's adds it to a text; others show the tool as the log has it."""
    tool = {"type": "function", "function": {"name": "f", "parameters": SCHEMA, **lacks}}
    log = row(0, EAST, HALL, log={"tools": [tool]})
    needs = "{% for t in tools %}{{ '// ' + t.function.description + '.' }}{% endfor %}"
    (sequence,), faults = tokenised(tmp_path / "1", needs + CHATML, log)
    assert not faults
    assert shown(sequence)[0].startswith("// .<|im_start|>system")
    (sequence,), _ = tokenised(tmp_path / "2", CHATML, log)
    assert f"system\n[{json.dumps(tool)}]<|im_end|>" in shown(sequence)[0]


MESSAGES = st.one_of(
    st.just(EAST),
    st.just(CALLED),
    st.just(said("assistant", "go", reasoning_content="a door")),
    st.just(said("assistant", "<think>\nhm\n</think>\n\nout")),
)
SEEN = st.sampled_from([HALL, said("tool", "a door"), said("system", "Late.")])


@settings(max_examples=examples(20))
@given(
    turns=st.lists(st.tuples(SEEN, MESSAGES, st.booleans()), min_size=4, max_size=7),
    template=st.sampled_from([CHATML, MARKED, ALTERNATING, FORGETFUL, THINKS, GLM]),
)
def test_turns_in_linear_time_are_those_that_are_rendered_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, turns: list[Any], template: str
):
    path = saved(tmp_path_factory.mktemp("m"), template)
    make = {True: cut, False: row}
    seen = [[HALL], *([each] for each, _, _ in turns[1:])]
    rows = [make[c](n, m, *seen[n]) for n, (_, m, c) in enumerate(turns)]
    with pytest.MonkeyPatch.context() as patch:
        quick = tokenised(path, template, *rows, added=TAGS)
        patch.setattr(sequences, "_MANY", len(turns) + 1)
        slow = tokenised(path, template, *rows, added=TAGS)
    assert quick[1] == slow[1]
    assert [each.spans for each in quick[0]] == [each.spans for each in slow[0]]
    assert [each.ids.tolist() for each in quick[0]] == [each.ids.tolist() for each in slow[0]]
