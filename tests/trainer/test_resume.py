"""`graphcredit train` killed for real, and spread over processes: the same weights come out."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.trainer.logs import random_episodes, token_store
from tests.trainer.models import save_tiny_model

_ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
_OPTIONS = {
    "--device": "cpu",
    "--batch-size": "4",
    "--epochs": "3",
    "--max-tokens": "64",
    "--learning-rate": "1e-3",
    "--checkpoint-every": "3",
}


def _command(tmp_path: Path, out: str, *launcher: str, shares: bool = False) -> list[str]:
    python = [sys.executable, *launcher, "-m", "graphcredit.cli.main", "train"]
    where = ["--model", str(tmp_path / "m"), "--out", str(tmp_path / out)]
    options = [word for pair in _OPTIONS.items() for word in pair]
    flags = ["--allow-mismatch", "--no-tensorboard", *(["--share-prefixes"] if shares else [])]
    return [*python, str(tmp_path / "s"), *where, *options, *flags]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=_ENVIRONMENT)
    assert done.returncode == 0, done.stderr


def _weights(tmp_path: Path, out: str) -> dict[str, torch.Tensor]:
    return load_file(tmp_path / out / "model" / "model.safetensors")


@pytest.mark.slow
@pytest.mark.parametrize("shares", [False, True])
def test_a_killed_training_ends_with_the_weights_of_one_that_was_not(tmp_path: Path, shares: bool):
    token_store(tmp_path / "s", random_episodes(0, 24, vocabulary=2 if shares else 32))
    save_tiny_model(tmp_path / "m")
    _run(_command(tmp_path, "whole", shares=shares))
    expected = _weights(tmp_path, "whole")

    moments, num_kills = random.Random(0), 0
    command, out = _command(tmp_path, "killed", shares=shares), tmp_path / "killed"
    while not (out / "result.json").exists():
        process = subprocess.Popen(command, env=_ENVIRONMENT, stdout=subprocess.DEVNULL)
        _wait_for_updates(process, out, moments.randint(6, 14))
        process.kill()
        num_kills += process.wait() != 0
    assert num_kills >= 3
    found = _weights(tmp_path, "killed")
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    logs = [(tmp_path / name / "metrics.jsonl").read_text() for name in ("whole", "killed")]
    assert _losses(logs[0]) == _losses(logs[1])


def _wait_for_updates(process: subprocess.Popen[bytes], out: Path, count: int) -> None:
    """Wait until a start has made some updates of its own, or is done."""
    log = out / "metrics.jsonl"
    started = time.time()
    before: int | None = None
    while process.poll() is None:
        if log.exists() and log.stat().st_mtime > started:
            lines = log.read_text().count("\n")
            before = lines if before is None else min(before, lines)
            if lines - before >= count:
                return
        time.sleep(0.005)


def _column(out: Path, name: str) -> list[float]:
    lines = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)[name] for line in lines]


def _losses(log: str) -> list[str]:
    return [line.partition('"seconds"')[0] for line in log.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("shares", [False, True])
def test_two_processes_train_the_weights_of_one(tmp_path: Path, shares: bool):
    """The one never shares prefixes."""
    token_store(tmp_path / "s", random_episodes(0, 16, vocabulary=2 if shares else 32))
    save_tiny_model(tmp_path / "m")
    _run(_command(tmp_path, "one"))
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    _run(_command(tmp_path, "two", *launcher, shares=shares))
    forwarded = [sum(_column(tmp_path / out, "num_tokens")) for out in ("one", "two")]
    assert (forwarded[1] < forwarded[0]) == shares
    one, two = _weights(tmp_path, "one"), _weights(tmp_path, "two")
    assert one.keys() == two.keys()
    # AdamW divides by the gradient's size, and that of a key's bias is nothing but rounding.
    for name, weight in one.items():
        gap = 1e-3 if name.endswith("k_proj.bias") else 1e-5
        torch.testing.assert_close(two[name], weight, rtol=1e-4, atol=gap)
    norms = [_column(tmp_path / out, "grad_norm") for out in ("one", "two")]
    assert norms[1] == pytest.approx(norms[0], rel=1e-4)
