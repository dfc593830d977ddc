"""One set of chats in every dialect gives one store."""

import json
import re
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from graphcredit.trainer.messages.conversation import conversation_of
from tests.collector.importers.dialects import DIALECTS, chats, openai
from tests.collector.importers.logs import write_lines
from tests.collector.importers.read_back import imported, steps_of

COLUMNS = (
    "task_id",
    "step_index",
    "state",
    "observation",
    "action",
    "thought",
    "reward",
    "success",
)


CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)


def rows(write: Callable[..., dict[str, Any]], *, task: bool) -> list[dict[str, Any]]:
    return [
        {**write(events), "reward": reward, **({"task_id": name} if task else {})}
        for name, reward, events in chats()
    ]


def steps(log: Path, store: Path) -> list[str]:
    """Return the steps, trajectory by trajectory, in an order that no id decides."""
    report = imported(log, store)
    assert (report.bad_rows, report.left_out) == ([], {})
    trajectories: dict[str, list[dict[str, Any]]] = {}
    for step in steps_of(store):
        trajectories.setdefault(step["trajectory_id"], []).append(step)
    return sorted(
        repr([*(tuple(step[name] for name in COLUMNS) for step in each), *chat(each)])
        for each in trajectories.values()
    )


def chat(trajectory: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return what a chat template gets: who says and calls what; results in a row are one.

    Arguments are in their order. A call in the words of an answer stays there as it stands.
    """
    conversation = conversation_of(trajectory)
    assert conversation.fault is None
    messages = [m for turn in conversation.turns for m in (*turn.seen, turn.answer)]
    return [
        (role, "\n\n".join(CALL.sub("", m["content"]).strip() for m in each), calls)
        for (role, calls), each in groupby(messages, lambda m: (m["role"], calls_of(m)))
    ]


def calls_of(message: dict[str, Any]) -> str:
    functions = [call["function"] for call in message.get("tool_calls", ())]
    functions += map(json.loads, CALL.findall(message["content"]))
    return json.dumps([(each["name"], each["arguments"]) for each in functions])


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Any]:
    folder = tmp_path_factory.mktemp("openai")

    def made(task: bool) -> list[Any]:
        log = write_lines(folder / f"{task}.jsonl", *rows(openai, task=task))
        return steps(log, folder / f"{task}")

    return {True: made(True), False: made(False)}


@pytest.mark.parametrize("task", [True, False], ids=["task", "prompt"])
@pytest.mark.parametrize("write", DIALECTS, ids=lambda write: write.__name__)
def test_one_store(write: Any, task: bool, right: dict[bool, Any], tmp_path: Path):
    log = write_lines(tmp_path / "log.jsonl", *rows(write, task=task))
    assert steps(log, tmp_path / "store") == right[task]


@pytest.mark.parametrize("write", ["openai", "bedrock", "gemini"])
def test_one_store_from_parquet(write: str, right: dict[bool, Any], tmp_path: Path):
    """Arrow gives every object the fields of all."""
    by_name = {each.__name__: each for each in DIALECTS}
    pl.DataFrame(rows(by_name[write], task=True)).write_parquet(tmp_path / "log.parquet")
    assert steps(tmp_path / "log.parquet", tmp_path / "store") == right[True]
