"""Logs of several makers become tokens alike, and templates of files are used: three commands."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from graphcredit.store.errors import InputError
from graphcredit.store.layout import open_store
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.messages.made import prompts_and_answers
from graphcredit.trainer.messages.tokens import tokens_of_messages
from graphcredit.trainer.training import train
from tests.cli.in_process import run
from tests.trainer.models import CHATML, MARKED, save_chat_model
from tests.trainer.test_messages import HEADLESS

ASKED, SEEN, RULE = "Größe? 漢字 🙂\r\nSay it.", "a door \u2028 a key", "Go."
ANSWERS = ("east", "west")
"""The last words of the two tries of a task; the first wins."""


def _call(arguments: Any, **more: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": "look", "arguments": arguments}}


def _openai(answer: str) -> list[dict[str, Any]]:
    return [
        {"role": "system", "content": RULE},
        {"role": "user", "content": ASKED},
        {"role": "assistant", "content": None, "tool_calls": [_call('{"at": 1}')]},
        {"role": "tool", "tool_call_id": "c1", "content": SEEN},
        {"role": "assistant", "content": [{"type": "text", "text": answer}]},
    ]


def _sharegpt(answer: str) -> list[dict[str, Any]]:
    return [
        {"from": "system", "value": RULE},
        {"from": "human", "value": ASKED},
        {"from": "function_call", "value": '{"name": "look", "arguments": {"at": 1}}'},
        {"from": "observation", "value": SEEN},
        {"from": "gpt", "value": answer},
    ]


def _anthropic(answer: str) -> list[dict[str, Any]]:
    used = {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": SEEN}
    return [
        {"role": "system", "content": RULE},
        {"role": "user", "content": ASKED},
        {"role": "assistant", "content": [used]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [{"type": "text", "text": answer}]},
    ]


def _gemini(answer: str) -> list[dict[str, Any]]:
    result = {"name": "look", "response": {"result": SEEN}}
    return [
        {"role": "system", "parts": [{"text": RULE}]},
        {"role": "user", "parts": [{"text": ASKED}]},
        {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"at": 1}}}]},
        {"role": "user", "parts": [{"functionResponse": result}]},
        {"role": "model", "parts": [{"text": answer}]},
    ]


def _responses(answer: str) -> dict[str, Any]:
    call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": 1}'}
    wordless, said = (
        {"role": "assistant", "content": [{"type": "output_text", "text": text}]}
        for text in ("", answer)
    )
    items = [
        {"type": "message", **wordless},
        call,
        {"type": "function_call_output", "call_id": "c1", "output": SEEN},
        {"type": "message", **said},
    ]
    asked = [{"role": "system", "content": RULE}, {"role": "user", "content": ASKED}]
    return {"responses_create_params": {"input": asked}, "response": {"output": items}}


def _verifiers(answer: str) -> dict[str, Any]:
    prompt, (called, *others) = _openai(answer)[:2], _openai(answer)[2:]
    called["tool_calls"] = [json.dumps(call) for call in called["tool_calls"]]
    return {"prompt": prompt, "completion": [called, *others]}


DIALECTS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "openai": lambda answer: {"messages": _openai(answer)},
    "tau-bench": lambda answer: {"traj": _openai(answer), "info": {}, "trial": 0},
    "sharegpt": lambda answer: {"conversations": _sharegpt(answer)},
    "anthropic": lambda answer: {"messages": _anthropic(answer)},
    "gemini": lambda answer: {"contents": _gemini(answer)},
    "responses": _responses,
    "verifiers": _verifiers,
}


def _log(path: Path, dialect: str) -> Path:
    """Write two tries of a task, with the line ends of Windows."""
    rows = [
        {"task_id": "t", "reward": float(not number), **DIALECTS[dialect](answer)}
        for number, answer in enumerate(ANSWERS)
    ]
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\r\n" for row in rows)
    return path


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_conversation_has_the_same_tokens_in_every_dialect(tmp_path: Path, dialect: str):
    log, store, model = _log(tmp_path / "log.jsonl", dialect), tmp_path / "store", tmp_path / "m"
    imported = run("import", log, store)
    assert imported.exit_code == 0, imported.err
    save_chat_model(model)
    shards = open_store(store).shards()
    made = tokens_of_messages(shards, model)
    assert made.notices == (made.notices[0],)
    decode = AutoTokenizer.from_pretrained(model).decode
    found = [
        tuple(map(decode, pair))
        for shard in shards
        for pair in prompts_and_answers(made, shard.path)
        if pair
    ]
    head = "<|im_start|>assistant\n"
    asked = f"<|im_start|>system\n{RULE}<|im_end|>\n<|im_start|>user\n{ASKED}<|im_end|>\n{head}"
    called = '<tool_call>{"name": "look", "arguments": {"at": 1}}</tool_call><|im_end|>'
    seen = f"{asked}{called}\n<|im_start|>tool\n{SEEN}<|im_end|>\n{head}"
    expected = [(asked, called), *((seen, f"{answer}<|im_end|>") for answer in ANSWERS)]
    assert sorted(set(found)) == sorted(expected)
    assert len(found) == len(ANSWERS) * 2


@pytest.mark.parametrize("own", [None, HEADLESS], ids=["none", "refused"])
def test_a_template_of_a_file_stands_for_that_of_the_model(tmp_path: Path, own: str | None):
    log, store, file = _log(tmp_path / "log.jsonl", "openai"), tmp_path / "s", tmp_path / "t.jinja"
    assert run("import", log, store).exit_code == 0
    assert run("credit", store, "-e", "grpo").exit_code == 0
    file.write_text(MARKED, encoding="utf-8")
    model, other = tmp_path / "m", tmp_path / "other"
    save_chat_model(model, own)
    save_chat_model(other, MARKED)
    asked = ("--advantage", "grpo", "--dry-run", "--json", "--out", tmp_path / "out")
    refused = run("train", store, "--model", model, *asked)
    assert (refused.exit_code, "--chat-template" in refused.err) == (2, True)
    planned = [
        json.loads(run("train", store, "--model", name, *more, *asked).out)
        for name, more in ((model, ("--chat-template", file)), (other, ()))
    ]
    assert planned[0]["plan"] == planned[1]["plan"]
    assert f"the chat template {file} made" in planned[0]["notices"][0]
    assert "by its marks of answers" in planned[0]["notices"][0]
    tokens = ("--to", "tokens", "--model", model, "--chat-template", file)
    assert run("export", store, tmp_path / "t.parquet", *tokens).exit_code == 0
    lone = run("export", store, tmp_path / "u.parquet", "--to", "tokens", "--chat-template", file)
    assert (lone.exit_code, "goes with --model only" in lone.err) == (2, True)
    missing = run("train", store, "--model", model, "--chat-template", tmp_path / "no", *asked)
    assert (missing.exit_code, "must be a file with a Jinja template" in missing.err) == (2, True)


def test_a_hostile_template_is_one_line_and_exit_code_2(tmp_path: Path):
    log, store, file = _log(tmp_path / "log.jsonl", "openai"), tmp_path / "s", tmp_path / "t.jinja"
    assert run("import", log, store).exit_code == 0
    asked = ("--to", "tokens", "--model", save_chat_model(tmp_path / "m"), "--chat-template", file)
    for template, reason in {
        "{{ 1 // 0 }}": "division",
        "{{ 'x' * 6000000000 }}": "memory",
    }.items():
        file.write_text(template, encoding="utf-8")
        ended = run("export", store, tmp_path / "t.parquet", *asked)
        assert (ended.exit_code, ended.err.count("\n"), reason in ended.err) == (2, 1, True)
        assert not (tmp_path / "t.parquet").exists()


@pytest.mark.slow
def test_the_new_policy_has_the_template_whose_file_is_gone_and_another_is_refused(tmp_path: Path):
    log, store, file = _log(tmp_path / "log.jsonl", "openai"), tmp_path / "s", tmp_path / "t.jinja"
    assert run("import", log, store).exit_code == 0
    assert run("credit", store, "-e", "grpo").exit_code == 0
    file.write_text(CHATML, encoding="utf-8")
    save_chat_model(tmp_path / "m", HEADLESS)
    config = TrainConfig(
        store=store,
        out=tmp_path / "out",
        model=str(tmp_path / "m"),
        chat_template=file,
        advantage="grpo",
    )
    done = train(
        config, on_progress=lambda what, *_: file.unlink(True) if what == "train" else None
    )
    assert not file.exists()
    assert AutoTokenizer.from_pretrained(tmp_path / "out" / "model").chat_template == CHATML
    file.write_text(CHATML, encoding="utf-8")
    assert train(config) == done
    file.write_text(MARKED, encoding="utf-8")
    with pytest.raises(InputError, match="of the plan that is given now"):
        train(config)


def test_a_log_with_token_ids_takes_no_template(tmp_path: Path):
    log, store, file = tmp_path / "log.jsonl", tmp_path / "s", tmp_path / "t.jinja"
    answer = {"role": "assistant", "content": "go", "response_ids": [5], "prompt_ids": [4]}
    row = {"task_id": "t", "messages": [{"role": "user", "content": "hall"}, answer]}
    log.write_text("\n".join(json.dumps({**row, "reward": n}) for n in (0, 1)), encoding="utf-8")
    assert run("import", log, store).exit_code == 0
    assert run("credit", store, "-e", "grpo").exit_code == 0
    file.write_text(CHATML, encoding="utf-8")
    asked = ("--model", save_chat_model(tmp_path / "m"), "--out", tmp_path / "out", "--dry-run")
    refused = run("train", store, *asked, "--advantage", "grpo", "--chat-template", file)
    assert (refused.exit_code, "this log has token ids" in refused.err) == (2, True)
