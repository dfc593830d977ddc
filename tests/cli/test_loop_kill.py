"""A loop that is killed in any stage ends where one that was not ends; no two run at one time."""

import json
from pathlib import Path
from typing import Any

import pytest

from graphcredit.loop.config import LoopConfig
from graphcredit.loop.run import run_loop
from graphcredit.store import open_store
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import InputError
from tests.cli.loop_worlds import corridor_loop, register_corridors, run, run_and_kill, save_talker
from tests.forks import FORKS

KILLED = -9

MOMENTS = [
    ("evaluate, greedy", 3),
    ("evaluate, sampled", 5),
    ("collect", 4),
    ("credit", 2),
    ("log-probabilities", 1),
    ("train", 2),
    ("collect", 4),  # of the second iteration, as the first is done by then
]
"""Where a start is killed: which stage, and how often it has told of its progress by then; those
that play or assign credit tell first that they begin. Each start goes on where the one before it
was killed."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("loops")
    save_talker(root / "start")
    return root


def _lines(root: Path, out: str) -> list[dict[str, Any]]:
    lines = (root / out / "loop.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        {name: value for name, value in json.loads(line).items() if not name.endswith("_seconds")}
        for line in lines
    ]


def _kill(config: LoopConfig, moments: list[tuple[str, int]]) -> None:
    for what, count in moments:
        process = FORKS.Process(target=run_and_kill, args=(config, what, count))
        process.start()
        process.join()
        assert process.exitcode == KILLED, (what, count)


def _check_same(root: Path, one: str, other: str) -> None:
    assert _lines(root, one) == _lines(root, other)
    policies = sorted(path.name for path in (root / one / "policies").iterdir())
    for policy in policies:
        models = [
            root / out / "policies" / policy / "model" / "model.safetensors" for out in (one, other)
        ]
        assert models[0].read_bytes() == models[1].read_bytes(), policy


@pytest.mark.slow
def test_a_loop_killed_in_every_stage_ends_with_the_bytes_of_one_that_was_not(root: Path):
    run(corridor_loop(root, "whole"))
    killed = corridor_loop(root, "killed")
    _kill(killed, MOMENTS)
    run(killed)
    _check_same(root, "killed", "whole")


def test_what_a_kill_cut_off_is_played_again_and_only_counted(root: Path):
    together = {"collect": {"concurrency": 8}, "evaluate": None}
    run(corridor_loop(root, "whole-together", **together))
    killed = corridor_loop(root, "cut-off", **together)
    _kill(killed, [("collect", 3)])
    run(killed)
    lines = _lines(root, "cut-off")
    assert lines[0].pop("dropped")["no_credit"] > 0
    assert lines == _lines(root, "whole-together")


@pytest.mark.slow
def test_trees_grow_the_same_after_a_kill_though_their_credit_is_in_the_history(root: Path):
    options: dict[str, Any] = {
        "update_every": "group",
        "collect": {"allocation": "spo3", "concurrency": 4},
        "credit": {"estimators": ["spo3"]},
        "evaluate": None,
    }
    run(corridor_loop(root, "whole-trees", **options))
    killed = corridor_loop(root, "killed-trees", **options)
    _kill(killed, [("train", 1), ("collect", 2)])
    run(killed)
    _check_same(root, "killed-trees", "whole-trees")


def test_two_loops_at_one_time_are_refused_and_the_first_goes_on(root: Path):
    config = corridor_loop(root, "twice")
    register_corridors()
    first = run_loop(config)
    lines = [next(first)]
    with pytest.raises(InputError, match="one loop at a time, but another process runs one there"):
        run(config)
    lines += first
    assert run(config) == lines
    assert [line["iteration"] for line in lines] == [0, 1, 2]
    assert check_store(open_store(root / "twice" / "store")).errors == ()
