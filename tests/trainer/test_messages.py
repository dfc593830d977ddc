"""A log of messages is trained on: the model's chat template makes the tokens."""

import json
from collections.abc import Mapping
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from graphcredit.store.errors import InputError
from graphcredit.trainer.messages.conversation import COLUMNS, conversation_of
from graphcredit.trainer.messages.sequences import TokenSequence, sequences_of
from graphcredit.trainer.messages.template import ChatTemplate
from tests.cli.in_process import run
from tests.trainer.models import CHATML, MARKED, chat_tokenizer, save_chat_model


def said(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


HALL, KITCHEN = said("user", "hall"), said("user", "kitchen")
CALL = {"function": {"name": "f", "arguments": '{"b": 1, "a": 2}'}}
OTHER = {"function": {"name": "other", "arguments": "{}"}}
EAST, OUT = said("assistant", "go east"), said("assistant", "go out")


def row(number: int, message: Any, *seen: Any, **more: Any) -> dict[str, Any]:
    """Return the columns of a step, as an import makes them; `log` is that of its trajectory."""
    extra = {"message": message, "seen": list(seen), "log": more.pop("log", {})}
    return {**dict.fromkeys(COLUMNS), "step_index": number, "extra": json.dumps(extra), **more}


def tokenised(
    path: Path, template: str | None, *rows: Mapping[str, Any], merges: Any = (), added: Any = ()
) -> tuple[list[TokenSequence], list[str]]:
    tokenizer = chat_tokenizer(template, merges)
    tokenizer.add_tokens(list(added))
    tokenizer.save_pretrained(path)
    opened, conversation = ChatTemplate(path, date(2026, 1, 2)), conversation_of(rows)
    sequences, faults = sequences_of(conversation, opened)
    return sequences, [*faults, *([conversation.fault] if conversation.fault else [])]


def shown(sequence: TokenSequence, added: Any = ()) -> list[str]:
    """Return prompt and answer in turn, as text."""
    tokenizer = chat_tokenizer(None)
    tokenizer.add_tokens(list(added))
    borders = [0, *(border for _, *span in sequence.spans for border in span)]
    assert borders[-1] == len(sequence.ids)
    return [str(tokenizer.decode(sequence.ids[start:end])) for start, end in pairwise(borders)]


@pytest.mark.parametrize("template", [CHATML, MARKED], ids=["compared", "marked"])
def test_all_turns_are_one_sequence_as_the_whole_chat_is_tokenised(tmp_path: Path, template: str):
    rows = row(0, EAST, said("system", "Go."), HALL), row(1, OUT, KITCHEN)
    (sequence,), faults = tokenised(tmp_path, template, *rows)
    assert not faults
    head = "<|im_start|>assistant\n"
    assert shown(sequence) == [
        f"<|im_start|>system\nGo.<|im_end|>\n<|im_start|>user\nhall<|im_end|>\n{head}",
        "go east<|im_end|>",
        f"\n<|im_start|>user\nkitchen<|im_end|>\n{head}",
        "go out<|im_end|>",
    ]
    # What transformers itself makes of the conversation, but for the line break at the end.
    whole: Any = chat_tokenizer(MARKED).apply_chat_template(
        [said("system", "Go."), HALL, EAST, KITCHEN, OUT],
        return_dict=True,
        return_assistant_tokens_mask=True,
    )
    mask = [0] * len(sequence.ids)
    for _, start, end in sequence.spans:
        mask[start:end] = [1] * (end - start)
    assert (sequence.ids.tolist(), mask) == (whole["input_ids"][:-1], whole["assistant_masks"][:-1])


def test_a_template_that_drops_earlier_reasoning_cuts_the_sequence(tmp_path: Path):
    forgetful = CHATML.replace(
        "{{ m.content }}",
        "{% if m.reasoning_content and loop.last %}<think>{{ m.reasoning_content }}</think>"
        "{% endif %}{{ m.content }}",
    )
    thoughtful = said("assistant", "go east", reasoning_content="a door")
    sequences, _ = tokenised(tmp_path, forgetful, row(0, thoughtful, HALL), row(1, OUT, KITCHEN))
    answers = [shown(each)[-1] for each in sequences]
    assert answers == ["<think>a door</think>go east<|im_end|>", "go out<|im_end|>"]
    assert "door" not in shown(sequences[1])[0]


def test_tokens_that_would_cross_the_beginning_of_an_answer_are_those_of_its_parts(tmp_path: Path):
    newlines = [("Ċ", "Ċ")]
    answer = said("assistant", "\n\nyes")
    (sequence,), _ = tokenised(tmp_path, CHATML, row(0, answer, HALL), merges=newlines)
    start = sequence.spans[0].start
    tokenizer = chat_tokenizer(CHATML, newlines)
    around = [tokenizer.decode(token) for token in sequence.ids[start - 1 : start + 1]]
    assert around == ["\n", "\n\n"]


def test_calls_and_tools_reach_the_template(tmp_path: Path):
    """The chat that an import writes stands for the messages; Anthropic defines the tool."""
    calls = [{"type": "function", "function": {"name": "look", "arguments": {"at": 1}}}]
    chats = [[HALL, said("assistant", "", tool_calls=calls)], [said("tool", "a door"), EAST]]
    extras = [{"message": {"parts": []}, "chat": chat} for chat in chats]
    extras[0]["log"] = {"tools": [{"name": "look", "input_schema": {"type": "object"}}]}
    rows = (row(n, {}, extra=json.dumps(extra)) for n, extra in enumerate(extras))
    (sequence,), _ = tokenised(tmp_path, CHATML, *rows)
    system, answer, seen, _ = shown(sequence)
    function = {"name": "look", "parameters": {"type": "object"}}
    assert json.dumps([{"type": "function", "function": function}]) in system
    called = '<tool_call>{"name": "look", "arguments": {"at": 1}}</tool_call>'
    assert answer == f"{called}<|im_end|>"
    assert "<|im_start|>tool\na door<|im_end|>" in seen


def test_arguments_keep_the_order_of_the_log():
    (turn,) = conversation_of([row(0, said("assistant", None, tool_calls=[CALL]), HALL)]).turns
    arguments = turn.answer["tool_calls"][0]["function"]["arguments"]
    assert list(arguments.items()) == [("b", 1), ("a", 2)]


PICTURE = said("user", [{"type": "image_url", "image_url": {"url": "x"}}])
STRICT = "{% for m in messages if m.content == 'sin' %}{{ raise_exception('no sin') }}{% endfor %}"


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (PICTURE, "some of their images are not kept"),
        (said("user", "", error={"code": 7}), "parts of no known dialect"),
        (said("user", "sin"), "the chat template refuses their messages (no sin)"),
    ],
)
def test_from_a_step_whose_messages_cannot_be_read_on_steps_are_left_out(
    tmp_path: Path, seen: Any, why: str
):
    rows = row(0, EAST, HALL), row(1, OUT, seen), row(2, EAST, HALL)
    sequences, faults = tokenised(tmp_path, STRICT + CHATML, *rows)
    assert [span.step for each in sequences for span in each.spans] == [0]
    assert why in faults[0]


HEADLESS = CHATML.split("{% if add_generation_prompt %}")[0]
SHORT = CHATML.replace("m.tool_calls or []", "(m.tool_calls or [])[:1]")
OPENED = CHATML.replace("assistant\n{% endif %}", "assistant\n<think>{% endif %}").replace(
    "{{ m.content }}",
    "{% if m.reasoning %}<think>{{ m.reasoning }}</think>{% endif %}{{ m.content }}",
)


@pytest.mark.parametrize(
    ("template", "answer", "why"),
    [
        (OPENED, EAST, "does not append their answer to its generation prompt"),
        (CHATML.replace("m.content", "m.text"), EAST, "leaves out the text of their answer"),
        (SHORT, said("assistant", "", tool_calls=[CALL, OTHER]), "leaves out calls of tools"),
    ],
)
def test_an_answer_that_the_template_does_not_show_as_it_is_is_left_out(
    tmp_path: Path, template: str, answer: Any, why: str
):
    thoughtful = said("assistant", "go out", reasoning="hm")
    sequences, faults = tokenised(
        tmp_path, template, row(0, answer, HALL), row(1, thoughtful, HALL)
    )
    assert why in faults[0]
    if template == OPENED:
        assert shown(sequences[0])[1:] == ["hm</think>go out<|im_end|>"]


def test_a_template_that_asks_for_the_date_is_told_that_of_the_log(tmp_path: Path):
    dated = "{{ strftime_now('%d %b %Y') }}" + CHATML
    (sequence,), _ = tokenised(tmp_path, dated, row(0, EAST, HALL))
    assert shown(sequence)[0].startswith("02 Jan 2026<|im_start|>user")


def test_a_token_at_the_end_of_all_texts_is_no_answer(tmp_path: Path):
    ending = HEADLESS.replace("<|im_end|>", "<|im_start|>")
    ending += (
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% else %}{{ eos_token }}{% endif %}"
    )
    (sequence,), _ = tokenised(tmp_path, ending, row(0, EAST, HALL), row(1, OUT, KITCHEN))
    assert shown(sequence)[1::2] == ["go east<|im_start|>", "go out<|im_start|>"]


MARK = "{% generation %}a{% endgeneration %}"


@pytest.mark.parametrize(
    ("template", "why"),
    [
        (HEADLESS, "its generation prompt must end with what begins all answers"),
        (f"{{% for m in messages %}}{MARK}b{MARK}{{% endfor %}}", "must mark each answer as one"),
        (None, "has none. Name a file with one by --chat-template"),
    ],
)
def test_a_template_that_does_not_tell_the_answer_is_refused(
    tmp_path: Path, template: str | None, why: str
):
    with pytest.raises(InputError, match=why):
        tokenised(tmp_path, template, row(0, EAST, HALL))


@pytest.mark.parametrize(
    "text", ["[]", "{", "[" * 5000, '{"eos_token_id": {}}', '{"eos_token_id": ["x", 1]}', "null"]
)
def test_files_of_a_model_that_name_no_token_are_refused(tmp_path: Path, text: str):
    save_chat_model(tmp_path)
    (tmp_path / "generation_config.json").write_text(text)
    with pytest.raises(InputError, match="files must be the numbers of tokens"):
        _ = ChatTemplate(tmp_path, date(2026, 1, 2)).ends


def test_steps_without_messages_are_observation_and_action(tmp_path: Path):
    rows = row(0, {}, state="hall", action="go"), row(1, {}, state="s", observation="o", action="x")
    (sequence,), _ = tokenised(tmp_path, CHATML, *rows)
    assert conversation_of(rows).num_by_columns == 2
    assert shown(sequence)[1::2] == ["go<|im_end|>", "x<|im_end|>"]
    assert "user\no<" in shown(sequence)[2]


@pytest.mark.slow
def test_objectives_without_ratios_take_no_log_probabilities(tmp_path: Path):
    """And sft has the loss of transformers for the answers of the better trajectory."""
    log, store, model = tmp_path / "log.jsonl", tmp_path / "store", tmp_path / "model"
    lines = [{"task_id": "t", "reward": n, "messages": [HALL, EAST, KITCHEN, OUT]} for n in (0, 1)]
    log.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert run("import", log, store).exit_code == 0
    assert run("credit", store, "-e", "grpo").exit_code == 0
    save_chat_model(model)
    asked = ("train", store, "--model", model, "--advantage", "grpo", "--out")
    plain = ("--objective", "reinforce", "--kl-coefficient", 0, "--batch-size", 2, "--json")
    result = json.loads(run(*asked, tmp_path / "out", *plain).out)
    assert (result["logprobs"], result["num_updates"]) == ("none", 2)
    line = json.loads((tmp_path / "out" / "metrics.jsonl").read_text().splitlines()[1])
    assert not {"ratio_mean", "approx_kl", "mismatch_mean"} & line.keys()
    assert not (tmp_path / "out" / "logprobs").exists()
    refused = run(*asked, tmp_path / "other", "--correction", "bypass")
    assert (refused.exit_code, "no step of the log has any" in refused.err) == (2, True)

    chosen = ("--objective", "sft", "--set", "weight=equal", "--one-sequence", "--json")
    result = json.loads(run(*asked, tmp_path / "sft", *chosen).out)
    assert (result["num_kept"], result["dropped"]) == (2, {"negative_advantage": 2})
    whole: Any = chat_tokenizer(MARKED).apply_chat_template(
        [HALL, EAST, KITCHEN, OUT], return_dict=True, return_assistant_tokens_mask=True
    )
    ids, mask = torch.tensor([whole["input_ids"]]), torch.tensor([whole["assistant_masks"]])
    labels = torch.where(mask == 1, ids, -100)
    expected = AutoModelForCausalLM.from_pretrained(model)(ids, labels=labels).loss.item()
    assert result["last"]["loss"] == pytest.approx(expected, rel=1e-5)
