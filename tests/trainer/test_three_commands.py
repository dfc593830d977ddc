"""A log becomes tokens, and templates of files are used: three commands."""

import json
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
CALL = {"id": "c1", "function": {"name": "look", "arguments": '{"at": 1}'}}


def _messages(answer: str) -> list[dict[str, Any]]:
    return [
        {"role": "system", "content": RULE},
        {"role": "user", "content": ASKED},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": SEEN},
        {"role": "assistant", "content": [{"type": "text", "text": answer}]},
    ]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store of two tries of a task with credit; its log has the line ends of Windows."""
    folder = tmp_path_factory.mktemp("logged")
    rows = [
        {"task_id": "t", "reward": float(not number), "messages": _messages(answer)}
        for number, answer in enumerate(ANSWERS)
    ]
    with (folder / "log.jsonl").open("w", encoding="utf-8", newline="") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\r\n" for row in rows)
    assert run("import", folder / "log.jsonl", folder / "store").exit_code == 0
    assert run("credit", folder / "store", "-e", "grpo").exit_code == 0
    return folder / "store"


def test_any_text_of_a_log_is_in_its_tokens(store: Path, tmp_path: Path):
    save_chat_model(model := tmp_path / "m")
    shards = open_store(store).shards()
    made, decode = tokens_of_messages(shards, model), AutoTokenizer.from_pretrained(model).decode
    pairs = [pair for shard in shards for pair in prompts_and_answers(made, shard.path) if pair]
    head = "<|im_start|>assistant\n"
    asked = f"<|im_start|>system\n{RULE}<|im_end|>\n<|im_start|>user\n{ASKED}<|im_end|>\n{head}"
    called = '<tool_call>{"name": "look", "arguments": {"at": 1}}</tool_call><|im_end|>'
    seen = f"{asked}{called}\n<|im_start|>tool\n{SEEN}<|im_end|>\n{head}"
    expected = [(asked, called)] * 2 + [(seen, f"{answer}<|im_end|>") for answer in ANSWERS]
    assert sorted(tuple(map(decode, pair)) for pair in pairs) == sorted(expected)


@pytest.mark.parametrize("own", [None, HEADLESS], ids=["none", "refused"])
def test_a_template_of_a_file_stands_for_that_of_the_model(
    store: Path, tmp_path: Path, own: str | None
):
    file = tmp_path / "t.jinja"
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


def test_a_hostile_template_is_one_line_and_exit_code_2(store: Path, tmp_path: Path):
    file = tmp_path / "t.jinja"
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
def test_the_new_policy_has_the_template_whose_file_is_gone_and_another_is_refused(
    store: Path, tmp_path: Path
):
    file = tmp_path / "t.jinja"
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
