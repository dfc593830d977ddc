"""Whole collections by a language model: what a trainer finds in the store."""

import json
import os
import signal
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import torch

from graphcredit.collector.collection import CollectReport, collect
from graphcredit.collector.environments.base import Task
from graphcredit.collector.environments.prefix_cache import Environments
from graphcredit.collector.options import CollectOptions
from graphcredit.collector.policies.registry import LanguageOptions, parse_policy
from graphcredit.store import open_store, read_steps
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import OptionError
from tests.collector.recomputed import TASKS, agreement, play
from tests.collector.talkers import CHAT_TEMPLATE, save_talker

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_talker(
        tmp_path_factory.mktemp("models") / "policy-000001", chat_template=CHAT_TEMPLATE
    )


def _collect(store: Path, model: str, **options: Any) -> CollectReport:
    return play(store, f"hf:{model}", **options)


def _played(store: Path) -> dict[tuple[str, int], tuple[str, list[int]]]:
    """Return action and tokens of each step of the trajectories that ended."""
    columns = ["trajectory_id", "step_index", "action", "response_ids", "success"]
    rows = [row for t in read_steps(open_store(store), columns=columns) for row in t.to_pylist()]
    ended = {row["trajectory_id"] for row in rows if row["success"] is not None}
    return {
        (row["trajectory_id"].partition(".")[0], row["step_index"]): (
            row["action"],
            row["response_ids"],
        )
        for row in rows
        if row["trajectory_id"] in ended
    }


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_the_trainer_recomputes_the_logged_logprobs(tmp_path: Path, model: str, temperature: float):
    _collect(tmp_path / "store", model, temperature=temperature)
    found = agreement(tmp_path / "store", model)
    assert found.num_steps == 2 * 3 * 4
    assert found.largest < 1e-4


def test_what_the_model_computes_in_is_recorded_and_stays_the_same(tmp_path: Path, model: str):
    _collect(tmp_path / "half", model, dtype="bfloat16")
    rounding = agreement(tmp_path / "half", model).mean
    assert 1e-3 < rounding < 0.1, "coarser than float32, within what the trainer tolerates"
    (table,) = read_steps(open_store(tmp_path / "half"), columns=["step_index", "extra"])
    firsts = [row["extra"] for row in table.to_pylist() if row["step_index"] == 0]
    assert {json.loads(extra)["dtype"] for extra in firsts} == {"bfloat16"}
    with pytest.raises(OptionError, match="dtype"):
        _collect(tmp_path / "half", model, dtype="float32")
    assert _collect(tmp_path / "half", model, dtype="bfloat16").num_already_complete == 6


@pytest.mark.parametrize(("has_gpu", "computed_in"), [(False, "float32"), (True, "bfloat16")])
def test_what_auto_comes_to_is_what_is_recorded(
    model: str, has_gpu: bool, computed_in: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("torch.cuda.is_available", lambda: has_gpu)
    assert parse_policy(f"hf:{model}", LanguageOptions()).settings["dtype"] == computed_in


@pytest.mark.slow
def test_the_number_of_trajectories_at_a_time_does_not_change_what_is_played(
    tmp_path: Path, model: str
):
    environments = Environments()
    for name, options in {
        "one": {"concurrency": 1, "environments": environments},
        "four": {"concurrency": 4, "environments": environments},
        "all": {},
        "workers": {"workers": 2, "concurrency": 2},
    }.items():
        report = _collect(tmp_path / name, model, **options)
        assert (report.num_trajectories, report.num_steps) == (6, 24)
    one = _played(tmp_path / "one")
    assert len(one) == 24
    assert one == _played(tmp_path / "four")
    assert one == _played(tmp_path / "all")
    assert one == _played(tmp_path / "workers")
    _collect(tmp_path / "other", model, seed=1)
    assert one != _played(tmp_path / "other")


def _collect_until_killed(store: Path, model: str) -> None:
    def kill(what: str, done: float = 0, total: int = 0, note: str = "") -> None:
        if done == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    _collect(store, model, concurrency=4, on_progress=kill)


@pytest.mark.slow
def test_a_killed_collection_goes_on_and_plays_the_same(tmp_path: Path, model: str):
    store = tmp_path / "store"
    process = get_context("spawn").Process(target=_collect_until_killed, args=(store, model))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    report = _collect(store, model)
    assert report.num_recovered_steps > 0
    assert (report.num_already_complete, report.num_trajectories) == (2, 4)
    assert check_store(open_store(store)).errors == ()
    _collect(tmp_path / "uninterrupted", model)
    assert _played(store) == _played(tmp_path / "uninterrupted")


def test_tasks_of_several_environments_need_a_template_that_is_named(tmp_path: Path, model: str):
    tasks = [*TASKS, Task(environment="textworld", spec="seed=1")]
    with pytest.raises(OptionError, match=r"template must be given .*: got search, textworld"):
        collect(tmp_path / "store", tasks, CollectOptions(policy=f"hf:{model}", workers=0))
    assert not (tmp_path / "store").exists()
