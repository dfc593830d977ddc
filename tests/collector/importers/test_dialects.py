"""One set of chats in every dialect gives one store."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

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


def rows(write: Callable[..., dict[str, Any]], *, task: bool) -> list[dict[str, Any]]:
    return [
        {**write(events), "reward": reward, **({"task_id": name} if task else {})}
        for name, reward, events in chats()
    ]


def steps(log: Path, store: Path) -> list[str]:
    """Return the steps, trajectory by trajectory, in an order that no id decides."""
    report = imported(log, store)
    assert (report.bad_rows, report.left_out) == ([], {})
    trajectories: dict[str, list[tuple[Any, ...]]] = {}
    for step in steps_of(store):
        values = tuple(step[name] for name in COLUMNS)
        trajectories.setdefault(step["trajectory_id"], []).append(values)
    return sorted(map(repr, trajectories.values()))


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
