"""Tokens come through the importers, whatever the format and the names it has for them.

Two answers: `2 3` after the prompt `1`, and `5` after `1 2 3 4`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.collector.importers.messages.rollout import Message
from graphcredit.collector.importers.messages.tokens import (
    NO_IDS,
    NO_LOGPROBS,
    NO_PROMPT,
    OTHER_LENGTH,
    OTHER_TURNS,
    samplings,
)
from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.preview import preview_log
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.training import train
from tests.cli.in_process import run
from tests.collector.importers.logs import episode, write_lines
from tests.collector.importers.read_back import brief, imported
from tests.trainer.models import save_tiny_model

TOKENS = ("prompt_ids", "response_ids", "response_logprobs")
FIRST, SECOND = ([1], [2, 3], [-0.5, -0.25]), ([1, 2, 3, 4], [5], [-1.0])
ROW = {
    "prompt_ids": [1],
    "completion_ids": [2, 3, 4, 5],
    "completion_mask": [1, 1, 0, 1],
    "logprobs": [-0.5, -0.25, 0.0, -1.0],
}


def answer(source: Mapping[str, Any] | None = None) -> Message:
    return Message(role="assistant", text="a", source=source or {})


@pytest.mark.parametrize(
    "source",
    [
        {"prompt_ids": [1], "response_ids": [2, 3], "logprobs": [-0.5, -0.25]},
        {"tokens": {"prompt_token_ids": [1], "completion_ids": [2, 3], "logprobs": [-0.5, -0.25]}},
        {
            "prompt_token_ids": [1],
            "logprobs": {
                "content": [
                    {"token": "token_id:2", "logprob": -0.5},
                    {"token": "token_id:3", "logprob": -0.25},
                ]
            },
        },
    ],
)
def test_tokens_of_an_answer(source: dict[str, Any]):
    (made,), reasons = samplings([answer(source)], {})
    assert tuple(getattr(made, name) for name in TOKENS) == FIRST
    assert reasons == []


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"input_ids": [1, 2, 3, 4, 5], "completion_mask": [0, 1, 1, 0, 1]},
        {"completion_mask": [0, 1, 1, 0, 1], "logprobs": [0, -0.5, -0.25, 0, -1]},
    ],
)
def test_tokens_of_a_record_are_cut_by_its_mask(change: dict[str, Any]):
    record = {**ROW, **change}
    if "input_ids" in change:
        del record["completion_ids"], record["prompt_ids"]
        record["logprobs"] = [0.0, *ROW["logprobs"]]
    made, reasons = samplings([answer(), answer()], record)
    assert [tuple(getattr(m, name) for name in TOKENS) for m in made] == [FIRST, SECOND]
    assert reasons == []


@pytest.mark.parametrize(
    ("sources", "record", "reasons"),
    [
        ([{}], {}, [NO_IDS]),
        ([{"tokens": {"prompt": 3}, "logprobs": None}], {}, [NO_IDS]),
        ([{"response_ids": [2]}], {}, [NO_PROMPT]),
        ([{"prompt_ids": [1], "response_ids": [2], "logprobs": [-1, -1]}], {}, [OTHER_LENGTH]),
        ([{}], ROW, [OTHER_TURNS]),
        ([{}, {}], {**ROW, "logprobs": [-1.0]}, [OTHER_LENGTH] * 2),
        (
            [
                {"prompt_ids": [1], "response_ids": [2], "logprobs": [-1.0]},
                {"prompt_ids": [1, 2], "response_ids": [3]},
            ],
            {},
            [NO_LOGPROBS],
        ),
    ],
)
def test_why_an_answer_has_none(
    sources: list[dict[str, Any]], record: dict[str, Any], reasons: list[str]
):
    made, found = samplings([answer(source) for source in sources], record)
    assert found == reasons
    assert sum(each.response_ids is None for each in made) == len(reasons)


def chat(*contents: str) -> list[dict[str, Any]]:
    roles = ("user", "assistant") * 2
    return [{"role": r, "content": c} for r, c in zip(roles, contents, strict=False)]


def rllm(tmp_path: Path) -> Path:
    """An episode as rLLM's `EpisodeLogger` writes it, with the fields of `Step.to_dict`."""
    steps = [
        {
            "prompt_ids": prompt,
            "response_ids": response,
            "logprobs": logprobs,
            "chat_completions": chat(*texts),
            "observation": None,
            "thought": "",
            "action": None,
            "model_response": texts[-1],
            "info": {},
            "reward": 0.0,
            "done": False,
            "mc_return": 0.0,
            "advantage": None,
            "weight_version": 7,
        }
        for (prompt, response, logprobs), texts in (
            (FIRST, ("hall", "east")),
            (SECOND, ("hall", "east", "kitchen", "take")),
        )
    ]
    trajectory = {"uid": "u", "name": "solver", "steps": steps, "reward": 1.0, "info": {}}
    episode = {
        "training_step": 3,
        "episode_id": "t:0",
        "task": {"q": "hall"},
        "task_hash": "t",
        "is_correct": True,
        "trajectories": [trajectory],
        "metrics": {},
    }
    return write_lines(tmp_path / "episodes.jsonl", episode)


def message_rows(tmp_path: Path) -> Path:
    messages = chat("hall", "east", "kitchen", "take")
    for message, values in zip(messages[1::2], (FIRST, SECOND), strict=True):
        message.update(zip(("prompt_token_ids", "response_ids", "logprobs"), values, strict=True))
    return write_lines(tmp_path / "rows.jsonl", {"messages": messages, "reward": 1.0})


def rows_of_a_sequence(tmp_path: Path) -> Path:
    row = {"messages": chat("hall", "east", "kitchen", "take"), "reward": 1.0, **ROW}
    return write_lines(tmp_path / "rows.jsonl", row)


def trl(tmp_path: Path) -> Path:
    """A row of TRL's completions, with the columns of its samples beside."""
    row = {
        "step": 4,
        "prompt": chat("hall"),
        "completion": chat("", "east", "kitchen", "take")[1:],
        "won": 1.0,
        "advantage": 0.0,
        **ROW,
    }
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "completions_00004.parquet")
    return tmp_path / "completions_00004.parquet"


def calls(tmp_path: Path) -> Path:
    """A row for each call, with what vLLM returns with `return_token_ids`."""
    rows: list[dict[str, Any]] = []
    said = chat("hall", "east", "kitchen", "take")
    for end, (prompt, response, logprobs) in ((1, FIRST), (3, SECOND)):
        content = [{"token": "x", "logprob": value} for value in logprobs]
        choice = {"message": said[end], "token_ids": response, "logprobs": {"content": content}}
        answer = {"choices": [choice], "prompt_token_ids": prompt}
        request = {"messages": said[:end]}
        rows.append({"request": request, "response": answer, "trace_id": "a", "reward": 1.0})
    return write_lines(tmp_path / "calls.jsonl", *rows)


@pytest.mark.parametrize("write", [rllm, message_rows, rows_of_a_sequence, trl, calls])
def test_tokens_come_through(write: Any, tmp_path: Path):
    report = imported(write(tmp_path), tmp_path / "s")
    assert (report.num_with_tokens, report.num_with_logprobs, report.num_steps) == (2, 2, 2)
    assert brief(tmp_path / "s", *TOKENS) == [FIRST, SECOND]


def test_a_preview_says_why_steps_have_no_tokens(tmp_path: Path):
    path = write_lines(
        tmp_path / "rows.jsonl",
        {"messages": chat("hall", "east", "kitchen", "take"), "reward": 1.0},
        {"messages": chat("hall", "west"), "reward": 0.0, "completion_ids": [2]},
        {"messages": chat("hall", "up"), "reward": 0.0, "prompt_ids": [1], "response_ids": [2]},
    )
    report = preview_log(path, ImportOptions(), 3).report
    assert (report.num_with_tokens, report.num_with_logprobs) == (1, 0)
    assert report.without_tokens == {NO_IDS: 2, NO_PROMPT: 1}


def test_train_takes_the_tokens_of_verifiers(tmp_path: Path):
    calls = [{"node": node, "sampling": {"temperature": 0.7}} for node in (2, 4)]
    lost = {"exit": {"score": 0.0, "weight": 1.0}}
    rows = episode(calls=calls), episode("trace-2", calls=calls, rewards=lost)
    log, store = write_lines(tmp_path / "traces.jsonl", *rows), tmp_path / "store"
    assert imported(log, store).num_with_tokens == 4
    assert run("credit", store, "-e", "grpo").exit_code == 0
    config = TrainConfig(
        store=store,
        out=tmp_path / "out",
        model=save_tiny_model(tmp_path / "model"),
        advantage="grpo",
        device="cpu",
        max_tokens=64,
        mismatch_tolerance=1e9,
    )
    result = train(config)
    assert (result["num_kept"], result["num_masked_tokens"]) == (4, 0)
