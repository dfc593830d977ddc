"""Workers that play with one model, which the process that collects has."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from graphcredit.collector.policies.engines import registry
from graphcredit.collector.policies.engines.base import Request, Response, Sampling
from graphcredit.collector.policies.language import policy as language
from graphcredit.collector.policies.tokens import load_tokenizer
from graphcredit.store import open_store, read_steps
from graphcredit.store.checks.run import check_store
from tests.collector.recomputed import play
from tests.collector.talkers import save_talker
from tests.workers import worker_pids

SAID = ("search[France]", "lookup[capital]", "search[Chad]", "lookup[continent]", "hm")
NUM_ROLLOUTS, NUM_STEPS = 6, 24


class _Dice:
    """An engine whose answers only the seeds decide; it stands in the process that collects."""

    room = None
    end_ids = frozenset({0})

    def __init__(self) -> None:
        self.tokenizer: Any = None
        self.num_loads = self.num_answers = 0
        self.fails_after: int | None = None

    def load(self, path: str, dtype: str = "auto") -> None:
        self.num_loads += 1
        self.tokenizer = load_tokenizer(path)

    def forget(self) -> None:
        pass

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Response]:
        self.num_answers += len(requests)
        if self.fails_after is not None and self.num_answers > self.fails_after:
            raise RuntimeError("CUDA error: device unavailable")
        said = [self.tokenizer(SAID[each.seed % len(SAID)])["input_ids"] for each in requests]
        return [
            Response(token_ids=i, logprobs=[-each.seed / 2**63] * len(i))
            for i, each in zip(said, requests, strict=True)
        ]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_talker(tmp_path_factory.mktemp("models") / "policy-000001")


@pytest.fixture
def dice(monkeypatch: pytest.MonkeyPatch) -> _Dice:
    engine = _Dice()
    kind = registry.EngineKind(open=lambda _: engine, library="transformers", extra="train")
    monkeypatch.setitem(registry.ENGINES, "hf", kind)
    monkeypatch.setattr(language, "_engines", {})
    return engine


def _played(store: Path) -> list[tuple[Any, ...]]:
    """Return the steps of the trajectories that ended."""
    names = ["trajectory_id", "step_index", "action", "response_ids", "response_logprobs"]
    columns = [*names, "prompt_ids", "success"]
    rows = [row for t in read_steps(open_store(store), columns=columns) for row in t.to_pylist()]
    ended = {row["trajectory_id"] for row in rows if row["success"] is not None}
    return sorted(
        (row["trajectory_id"].partition(".")[0], *(row[name] for name in columns[1:]))
        for row in rows
        if row["trajectory_id"] in ended
    )


def test_one_model_plays_the_same_whatever_the_number_of_workers(
    tmp_path: Path, model: str, dice: _Dice
):
    for workers in (0, 1, 3):
        report = play(tmp_path / f"{workers}", f"hf:{model}", workers=workers, concurrency=4)
        assert (report.num_trajectories, report.num_steps) == (NUM_ROLLOUTS, NUM_STEPS)
    alone, one, three = (_played(tmp_path / name) for name in "013")
    assert len(alone) == NUM_STEPS
    assert one == alone
    assert three == alone
    assert (dice.num_loads, dice.num_answers) == (1, 3 * NUM_STEPS), "no worker had a model"


def test_a_worker_that_dies_is_replaced_and_what_it_played_is_played_again(
    tmp_path: Path, model: str, dice: _Dice
):
    killed: list[int] = []

    def kill(what: str, done: float = 0, total: int = 0, note: str = "") -> None:
        if not killed:
            killed.append(worker_pids()[0])
            os.kill(killed[0], signal.SIGKILL)

    play(tmp_path / "whole", f"hf:{model}", workers=0)
    play(tmp_path / "killed", f"hf:{model}", workers=2, concurrency=4, on_progress=kill)
    assert killed
    assert _played(tmp_path / "killed") == _played(tmp_path / "whole")
    assert check_store(open_store(tmp_path / "killed")).errors == ()


def test_what_the_model_raises_is_raised_here_and_the_next_start_goes_on(
    tmp_path: Path, model: str, dice: _Dice
):
    play(tmp_path / "whole", f"hf:{model}", workers=0)
    dice.fails_after = dice.num_answers + NUM_STEPS // 2
    with pytest.raises(RuntimeError, match="CUDA error: device unavailable"):
        play(tmp_path / "cut", f"hf:{model}", workers=2, concurrency=2)
    assert worker_pids() == []
    dice.fails_after = None
    report = play(tmp_path / "cut", f"hf:{model}", workers=2, concurrency=2)
    assert report.num_recovered_steps + report.num_already_complete > 0
    assert _played(tmp_path / "cut") == _played(tmp_path / "whole")
