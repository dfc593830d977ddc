"""A training on two ranks and a loop, killed at any moment: the same command ends as if none were.

`python -c "from tests.resumed_kills import kills; kills('train', 50)"` kills as often; the tests
less.
"""

import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import torch

from graphcredit.store.checks.run import check_store
from graphcredit.store.layout import open_store
from tests.cli.in_process import run
from tests.cli.loop_worlds import corridor_loop, save_talker
from tests.cli.loop_worlds import run as run_loop
from tests.trainer.logs import random_episodes, token_store
from tests.trainer.models import save_tiny_model
from tests.trainer.ranks import start_ranks

_TRAINING = (
    "--device cpu --batch-size 4 --epochs 2 --max-tokens 64 --learning-rate 1e-3"
    " --checkpoint-every 2 --mismatch-tolerance 1e9"
)


@dataclass(frozen=True, slots=True)
class Resumed:
    """A command that goes on where it was killed."""

    prepare: Callable[[Path], object]
    """Write what it needs to a folder."""
    work: Callable[[Path, str], None]
    """Run it in a folder, to an output of that name."""
    result: Callable[[Path, str], Any]
    """Return all that must not depend on kills; None before it is done."""
    store: Callable[[Path, str], Path]
    num_ranks: int


def _prepare_training(folder: Path, *, shares: bool = False) -> None:
    token_store(folder / "store", random_episodes(0, 12, vocabulary=2 if shares else 32))
    save_tiny_model(folder / "model")


def train(folder: Path, out: str, *flags: str) -> None:
    """Run the command in this process, on one thread."""
    torch.set_num_threads(1)
    where = ["--model", folder / "model", "--out", folder / out]
    ended = run("train", folder / "store", *where, *_TRAINING.split(), *flags)
    assert ended.exit_code == 0, ended.err


def _share(folder: Path, out: str) -> None:
    train(folder, out, "--share-prefixes")


def _trained(folder: Path, out: str) -> Any:
    if not (folder / out / "result.json").exists():
        return None
    lines = (folder / out / "metrics.jsonl").read_text().splitlines()
    (logged,) = (folder / "store" / "training").rglob(f"{out}.parquet")
    rows = [*map(json.loads, lines), *pq.ParquetFile(logged).read().to_pylist()]
    return _untimed(rows), _weights(folder / out)


def _loop(folder: Path, out: str) -> None:
    run_loop(corridor_loop(folder, out))


def _looped(folder: Path, out: str) -> Any:
    log = folder / out / "loop.jsonl"
    lines = log.read_text().splitlines() if log.exists() else []
    if len(lines) < 3:
        return None
    rows = _untimed([json.loads(line) for line in lines])
    # Trajectories that were cut off are played again, and counted: the only difference.
    return [{**row, "dropped": None} for row in rows], _weights(folder / out)


def _untimed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    measured = ("seconds", "tokens_per_second", "mfu", "memory", "training")
    return [
        {name: value for name, value in row.items() if not name.endswith(measured)} for row in rows
    ]


def _weights(out: Path) -> dict[str, bytes]:
    found = sorted(out.rglob("model.safetensors"))
    return {str(path.relative_to(out)): path.read_bytes() for path in found}


RESUMED = {
    "train": Resumed(_prepare_training, train, _trained, lambda at, out: at / "store", 2),
    "train, shared": Resumed(
        lambda folder: _prepare_training(folder, shares=True),
        _share,
        _trained,
        lambda at, out: at / "store",
        1,
    ),
    "loop": Resumed(
        lambda folder: save_talker(folder / "start"),
        _loop,
        _looped,
        lambda at, out: at / out / "store",
        1,
    ),
}


def kills(name: str, number: int, seed: int = 0) -> dict[str, int]:
    """Run a command again and again, and kill it at random until it has been killed so often.

    Returns:
        How many starts were killed, how many ended by themselves, and how many outputs there are.
    """
    resumed, chance = RESUMED[name], random.Random(seed)
    counts, took = {"killed": 0, "done": 0, "outputs": 0}, 2.0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        resumed.prepare(folder)
        while (expected := resumed.result(folder, "whole")) is None:
            for rank in start_ranks(resumed.num_ranks, _quiet, resumed.work, folder, "whole"):
                rank.join()
        while counts["killed"] < number:
            out = f"killed{counts['outputs']}"
            while (found := resumed.result(folder, out)) is None:
                ranks = start_ranks(resumed.num_ranks, _quiet, resumed.work, folder, out)
                was_killed = _kill_at_random(ranks, chance, took)
                took *= 1.3 if was_killed else 0.9
                counts["killed" if was_killed else "done"] += 1
                assert_sound(resumed.store(folder, out))
            assert found == expected
            assert not list((folder / out).rglob("*.tmp"))
            counts["outputs"] += 1
    return counts


def _quiet(work: Callable[[Path, str], None], folder: Path, out: str) -> None:
    """Work, and tell nobody of it: a rank whose other one was killed has much to say."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    work(folder, out)


def assert_sound(store: Path) -> None:
    """What a kill leaves is a store without damage, or not yet one."""
    if (store / "store.json").exists():
        report = check_store(open_store(store))
        assert not report.errors, report.errors


def _kill_at_random(ranks: list[BaseProcess], chance: random.Random, took: float) -> bool:
    """Kill one rank after a random time, and end the others as torchrun does.

    A rank that waits for a first word of the others hears no SIGTERM.
    """
    deadline = time.monotonic() + chance.uniform(0.05, 1.0) * took
    chance.shuffle(ranks)
    for rank in ranks:
        rank.join(max(0.0, deadline - time.monotonic()))
    was_killed = any(rank.exitcode is None for rank in ranks)
    if was_killed:
        ranks[0].kill()
        for rank in ranks[1:]:
            rank.join(chance.choice([0.0, 0.2]))
            rank.terminate()
            rank.join(chance.choice([0.0, 5.0]))
            rank.kill()
    for rank in ranks:
        rank.join()
    return was_killed
