"""A log of messages with images is trained on: the model's own processor says the tokens."""

import base64
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from safetensors.torch import load_file
from transformers import AutoImageProcessor, AutoTokenizer
from transformers.models.qwen2_5_vl import Qwen2_5_VLProcessor

from graphcredit.store.layout import open_store
from graphcredit.trainer.messages.made import MessageTokens, prompts_and_answers
from graphcredit.trainer.messages.tokens import tokens_of_messages
from tests.cli.in_process import run
from tests.trainer.models import save_chat_model
from tests.trainer.vision import KINDS, picture, save_chat_seer

HALL, DOOR, KEY = (picture(2, 3), picture(4, 2, seed=1), picture(3, 3, seed=2, kind="JPEG"))
Show = Callable[[bytes], dict[str, Any]]


class Processor(Qwen2_5_VLProcessor):
    """Transformers' processor without videos, whose processor needs torchvision."""

    @classmethod
    def get_attributes(cls) -> list[str]:
        return ["image_processor", "tokenizer"]

    def __init__(self, image_processor: Any, tokenizer: Any) -> None:
        super().__init__(image_processor, tokenizer)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def openai(image: bytes) -> dict[str, Any]:
    url = f"data:image/png;base64,{base64.b64encode(image).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def anthropic(image: bytes) -> dict[str, Any]:
    data = base64.b64encode(image).decode()
    source = {"type": "base64", "media_type": "image/png", "data": data}
    return {"type": "image", "source": source}


def chat(show: Show, last: str) -> list[dict[str, Any]]:
    """Return three turns; the second sees no image, the third two."""
    return [
        {"role": "system", "content": "Go."},
        {"role": "user", "content": [text("Here"), show(HALL), text("is it.")]},
        {"role": "assistant", "content": "look"},
        {"role": "user", "content": "Nothing."},
        {"role": "assistant", "content": "walk"},
        {"role": "user", "content": [show(DOOR), show(KEY)]},
        {"role": "assistant", "content": last},
    ]


def imported(tmp_path: Path, chats: Sequence[list[dict[str, Any]]]) -> Path:
    log, store = tmp_path / "log.jsonl", tmp_path / "store"
    rows = [{"task_id": "t", "reward": n, "messages": each} for n, each in enumerate(chats)]
    log.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    done = run("import", log, store)
    assert done.exit_code == 0, done.err
    return store


def made(store: Path, model: str) -> tuple[MessageTokens, list[tuple[list[int], list[int]] | None]]:
    (shard,) = open_store(store).shards()
    tokens = tokens_of_messages([shard], Path(model))
    return tokens, prompts_and_answers(tokens, shard.path)


def processed(model: str, messages: Sequence[dict[str, Any]]) -> list[int]:
    """Return the ids that transformers' processor makes of a conversation."""
    shown = [dict(message) for message in messages]
    for message in shown:
        if isinstance(message["content"], list):
            message["content"] = [
                part if part["type"] == "text" else {"type": "image", "image": opened(part)}
                for part in message["content"]
            ]
    tokenizer: Any = AutoTokenizer.from_pretrained(model)
    processor: Any = Processor(AutoImageProcessor.from_pretrained(model), tokenizer)
    processed = processor.apply_chat_template(
        shown, chat_template=tokenizer.chat_template, tokenize=True, return_dict=True
    )
    return list(processed["input_ids"][0])


def opened(part: dict[str, Any]) -> Any:
    content = base64.b64decode(part["image_url"]["url"].partition(",")[2])
    return Image.open(io.BytesIO(content))


@pytest.mark.parametrize("kind", KINDS)
def test_the_ids_are_those_of_the_processor(tmp_path: Path, kind: str):
    model = save_chat_seer(tmp_path / "m", kind)
    messages = chat(openai, "out")
    tokens, found = made(imported(tmp_path, [messages]), model)
    assert len(tokens.notices) == 1
    assert "in 1 sequences" in tokens.notices[0]
    decode = AutoTokenizer.from_pretrained(model).decode
    assert len(found) == 3
    for turn, pair in enumerate(found):
        assert pair is not None
        prompt, answer = pair
        whole = processed(model, messages[: 3 + 2 * turn])
        assert decode(whole[len(prompt) + len(answer) :]) == "\n"
        assert prompt + answer == whole[: len(prompt) + len(answer)]
        assert decode(answer) == f"{('look', 'walk', 'out')[turn]}<|im_end|>"
    counts = [decode(pair[0]).count("<|image_pad|>") for pair in found if pair]
    assert counts == [6, 6, 6 + 8 + 9]


def test_images_of_another_dialect_stand_where_it_has_them(tmp_path: Path):
    model = save_chat_seer(tmp_path / "m")
    used = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [text("A"), anthropic(DOOR)]}
    messages = [
        {"role": "user", "content": [text("Here"), anthropic(HALL), text("it is")]},
        {"role": "assistant", "content": [used]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [text("out")]},
    ]
    _, found = made(imported(tmp_path, [messages]), model)
    decode = AutoTokenizer.from_pretrained(model).decode
    assert found[1] is not None
    shown = decode(found[1][0])
    first, second = (f"<|vision_start|>{'<|image_pad|>' * n}<|vision_end|>" for n in (6, 8))
    assert f"Here\n{first}\nit is" in shown
    assert f"<tool_response>\nA\n{second}\n</tool_response>" in shown


def test_a_placeholder_that_the_policy_said_is_text(tmp_path: Path):
    model = save_chat_seer(tmp_path / "m")
    _, found = made(imported(tmp_path, [chat(openai, "a <|image_pad|>")]), model)
    decode = AutoTokenizer.from_pretrained(model).decode
    assert found[2] is not None
    assert decode(found[2][0]).count("<|image_pad|>") == 6 + 8 + 9
    assert decode(found[2][1]) == "a <|image_pad|><|im_end|>"


def test_steps_whose_images_have_no_place_are_left_out(tmp_path: Path):
    messages = chat(openai, "out")
    messages[1]["content"][0] = text("The token <|image_pad|> is")
    messages[5]["content"][0] = {"type": "image_url", "image_url": {"url": "https://e.org/a.png"}}
    other = [*messages[:2], {"role": "assistant", "content": "no"}]
    plain = [{"role": "user", "content": "hall"}, {"role": "assistant", "content": "go"}]
    store = imported(tmp_path, [messages, other, plain])
    tokens, found = made(store, save_chat_seer(tmp_path / "m"))
    assert sum(pair is not None for pair in found) == tokens.num_steps == 1
    assert any("1 steps" in n and "some of their images are not kept" in n for n in tokens.notices)
    assert any("3 steps" in n and "one <|image_pad|> for each image" in n for n in tokens.notices)


def test_a_model_that_cannot_see_is_refused_by_what_helps(tmp_path: Path):
    store = imported(tmp_path, [chat(openai, "out"), chat(openai, "in")])
    assert run("credit", store, "-e", "grpo").exit_code == 0
    asked = ("--model", save_chat_model(tmp_path / "m"), "--out", tmp_path / "out")
    refused = run("train", store, *asked, "--advantage", "grpo")
    assert refused.exit_code == 2
    assert "6 steps: their messages have images, for which --model must be a vision" in refused.err
    assert "--chat-template" not in refused.err


@pytest.mark.parametrize("kind", KINDS)
def test_a_log_with_images_is_trained_on_in_three_commands(tmp_path: Path, kind: str):
    store = imported(tmp_path, [chat(openai, "out"), chat(openai, "in")])
    assert run("credit", store, "-e", "grpo").exit_code == 0
    asked = ("--model", save_chat_seer(tmp_path / "m", kind), "--out", tmp_path / "out", "--json")
    trained = run("train", store, *asked, "--advantage", "grpo")
    assert trained.exit_code == 0, trained.err
    result = json.loads(trained.out)
    assert (result["num_steps"], result["num_kept"], result["dropped"]) == (6, 6, {})
    assert result["last"]["grad_norm"] > 0
    old, new = (
        load_file(folder / "model.safetensors")
        for folder in (tmp_path / "m", tmp_path / "out/model")
    )
    assert any("visual" in name and not old[name].equal(new[name]) for name in old)
