"""Logs of agents with tools, by templates that behave as those of the families of models do."""

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from graphcredit.store.layout import open_store
from graphcredit.trainer.messages.made import prompts_and_answers
from graphcredit.trainer.messages.tokens import tokens_of_messages
from tests.cli.in_process import run
from tests.examples import nightly
from tests.trainer.models import CHATML, save_chat_model
from tests.trainer.test_messages import CALL, EAST, HALL, KITCHEN, OUT, row, said, shown, tokenised

ORDERS = Path(__file__).parents[2] / "examples" / "orders.jsonl"
_NUM_LINES = 8

ALTERNATING = (
    "{% for m in messages %}{% if m.role not in ('user', 'assistant') or "
    "(m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('must alternate') }}"
    "{% endif %}<|im_start|>{{ 'model' if m.role == 'assistant' else m.role }}\n"
    "{{ m.content | trim }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>model\n{% endif %}"
)
"""As Gemma's: no system, no tools, the user and the model in turn."""

BRACKETS = (
    "{{ bos_token }}{% set rest = messages[1:] if messages[0].role == 'system' else messages %}"
    "{% for m in rest %}{% if m.role not in ('user', 'assistant') or "
    "(m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('must alternate') }}"
    "{% endif %}{% if m.role == 'assistant' %} {{ m.content }}{{ eos_token }}{% else %}[INST] "
    "{% if loop.first and messages[0].role == 'system' %}{{ messages[0].content }}\n{% endif %}"
    "{{ m.content }} [/INST]{% endif %}{% endfor %}"
)
"""As Mistral's: no generation prompt, the system in the first message of the user."""

DATED = (
    "{{ bos_token }}<|im_start|>system\nToday Date: {{ strftime_now('%d %b %Y') }}\n"
    "{% if messages[0].role == 'system' %}{{ messages[0].content }}{% endif %}"
    "{% if tools %}{{ tools | tojson }}{% endif %}<|im_end|>"
    "{% for m in messages %}{% if m.role == 'tool' %}<|im_start|>ipython\n{{ m.content | tojson }}"
    "<|im_end|>{% elif m.tool_calls %}{% if m.tool_calls | length != 1 %}"
    "{{ raise_exception('one call at once') }}{% endif %}<|im_start|>assistant\n"
    '{"name": "{{ m.tool_calls[0].function.name }}", "parameters": '
    "{{ m.tool_calls[0].function.arguments | tojson }}}<|im_end|>"
    "{% elif m.role != 'system' %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""As Llama 3's: a date, the words of tools by another name."""

SILENT = (
    "{% for m in messages %}{% if m.role in ('system', 'user', 'assistant') %}<|im_start|>"
    "{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% else %}{{ eos_token }}{% endif %}"
)
"""As Phi's: what it does not know it leaves out, and a token ends all texts."""

FORGETFUL = (
    "{% set ns = namespace(user=0) %}"
    "{% for m in messages %}{% if m.role == 'user' %}{% set ns.user = loop.index0 %}{% endif %}"
    "{% endfor %}{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' and loop.index0 > ns.user and (loop.last or m.reasoning_content) "
    "%}<think>\n{{ m.reasoning_content or '' }}\n</think>\n\n{% endif %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""As Qwen3's: reasoning before the user's last words is dropped, and none is an empty one."""

FAMILIES = {
    "chatml": CHATML,
    "alternating": ALTERNATING,
    "brackets": BRACKETS,
    "dated": DATED,
    "silent": SILENT,
    "forgetful": FORGETFUL,
}

TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}
CALLED = said("assistant", "", tool_calls=[CALL])
TALK = (
    row(0, CALLED, said("system", "Go."), HALL, log={"tools": [TOOL]}),
    row(1, EAST, said("tool", "a door"), said("tool", "a key"), KITCHEN),
    row(2, OUT, KITCHEN),
)
AS_TEXT = '<tool_call>\n{"name": "f", "arguments": {"b": 1, "a": 2}}\n</tool_call>'


@pytest.mark.parametrize("family", FAMILIES)
def test_every_answer_of_an_agent_with_tools_has_tokens(tmp_path: Path, family: str):
    sequences, faults = tokenised(tmp_path, FAMILIES[family], *TALK)
    assert not faults
    assert [span.step for each in sequences for span in each.spans] == [0, 1, 2]
    texts = [shown(each) for each in sequences]
    answers = [text for each in texts for text in each[1::2]]
    assert all(word in text for word, text in zip(["f", "go east", "go out"], answers, strict=True))
    assert len(sequences) == (3 if family == "forgetful" else 1)
    for word in ("Go.", "hall", "a door", "a key", "kitchen", '"f"'):
        assert word in "".join(texts[-1])


ENDING = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}"
    "{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}"
    "{% else %}{{ m.content }}<|im_end|>{% endif %}{% endfor %}"
    "{% if messages[-1].role == 'assistant' %}{% generation %}{{ eos_token }}{% endgeneration %}"
    "{% endif %}"
)
"""As TRL's copy of Phi's: the token that ends the text is marked as the last answer is."""


@pytest.mark.parametrize(
    ("template", "around"),
    [(FORGETFUL, "<think>\n\n</think>\n\n{}<|im_end|>"), (ENDING, "{}<|im_end|><|im_end|>")],
)
def test_two_answers_in_a_row_have_tokens_where_the_second_changes_the_first(
    tmp_path: Path, template: str, around: str
):
    sequences, faults = tokenised(tmp_path, template, row(0, EAST, HALL), row(1, OUT))
    assert not faults
    found = [text for each in sequences for text in shown(each)[1::2]]
    assert found == [around.format("go east"), around.format("go out")]


def test_what_a_template_does_not_take_is_text(tmp_path: Path):
    (sequence,), _ = tokenised(tmp_path, ALTERNATING, *TALK)
    definition = json.dumps(TOOL)
    assert shown(sequence) == [
        f"<|im_start|>user\nGo.\n\n<tools>\n{definition}\n</tools>\n\nhall<|im_end|>\n"
        "<|im_start|>model\n",
        f"{AS_TEXT}<|im_end|>",
        "\n<|im_start|>user\n<tool_response>\na door\n</tool_response>\n\n"
        "<tool_response>\na key\n</tool_response>\n\nkitchen<|im_end|>\n<|im_start|>model\n",
        "go east<|im_end|>",
        "\n<|im_start|>user\nkitchen<|im_end|>\n<|im_start|>model\n",
        "go out<|im_end|>",
    ]


def test_calls_that_a_template_takes_in_part_alone_are_texts_in_the_whole_log(tmp_path: Path):
    """A reason beside a call, and two calls at once: Llama's leaves out or refuses them."""
    log, store, model = tmp_path / "log.jsonl", tmp_path / "store", tmp_path / "model"
    chats = [[HALL, said("assistant", text, tool_calls=[CALL])] for text in ("", "a reason")]
    lines = [{"task_id": "t", "reward": n, "messages": chat} for n, chat in enumerate(chats)]
    log.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert run("import", log, store).exit_code == 0
    save_chat_model(model, DATED)
    shards = open_store(store).shards()
    made = tokens_of_messages(shards, model)
    assert (made.num_steps, "takes no calls of tools as they are" in made.notices[1]) == (2, True)
    decode = AutoTokenizer.from_pretrained(model).decode
    answers = {decode(pair[1]) for pair in prompts_and_answers(made, shards[0].path) if pair}
    assert answers == {f"{AS_TEXT}<|im_end|>", f"a reason\n{AS_TEXT}<|im_end|>"}


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store of the first rollouts of the example, with credit."""
    folder = tmp_path_factory.mktemp("orders")
    lines = ORDERS.read_text(encoding="utf-8").splitlines()[:_NUM_LINES]
    (folder / "log.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert run("import", folder / "log.jsonl", folder / "store").exit_code == 0
    assert run("credit", folder / "store").exit_code == 0
    return folder / "store"


@pytest.mark.slow
@pytest.mark.parametrize("family", ["alternating", nightly("forgetful")])
def test_a_log_of_messages_becomes_an_adapter(tmp_path: Path, orders: Path, family: str):
    model, out = tmp_path / "model", tmp_path / "out"
    save_chat_model(model, FAMILIES[family], max_position_embeddings=4096)
    asked = ("train", orders, "--model", model, "--lora-rank", 2, "--out", out, "--json")
    trained = run(*asked)
    assert trained.exit_code == 0, trained.err
    result: dict[str, Any] = json.loads(trained.out)
    lines = ORDERS.read_text(encoding="utf-8").splitlines()[:_NUM_LINES]
    num_answers = sum(line.count('"role": "assistant"') for line in lines)
    assert result["num_kept"] == num_answers > 0
    assert result["last"]["grad_norm"] > 0
    assert (out / "model" / "adapter" / "adapter_model.safetensors").exists()
    is_text = any("takes no calls of tools" in notice for notice in result["notices"])
    assert is_text == (family == "alternating")
