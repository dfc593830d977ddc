"""`graphcredit train` spread over processes: the same weights come out."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.cli.in_process import run
from tests.trainer.logs import random_episodes, token_store
from tests.trainer.models import save_tiny_model

_OPTIONS = {
    "--device": "cpu",
    "--batch-size": "4",
    "--epochs": "2",
    "--max-tokens": "64",
    "--learning-rate": "1e-3",
    "--checkpoint-every": "3",
}


def _arguments(tmp_path: Path, out: str) -> list[str]:
    where = ["--model", str(tmp_path / "m"), "--out", str(tmp_path / out)]
    options = [word for pair in _OPTIONS.items() for word in pair]
    return ["train", str(tmp_path / "s"), *where, *options, "--mismatch-tolerance", "1e9"]


def _train_by_torchrun(arguments: list[str], num_processes: int) -> None:
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    command = [sys.executable, *launcher, str(num_processes), "-m", "graphcredit.cli.main"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr


def _weights(tmp_path: Path, out: str) -> dict[str, torch.Tensor]:
    return load_file(tmp_path / out / "model" / "model.safetensors")


def _column(out: Path, name: str) -> list[float]:
    lines = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)[name] for line in lines]


@pytest.mark.slow
def test_two_processes_that_share_prefixes_train_the_weights_of_one_that_does_not(tmp_path: Path):
    token_store(tmp_path / "s", random_episodes(0, 10, vocabulary=2))
    save_tiny_model(tmp_path / "m")
    torch.set_num_threads(1)
    ended = run(*_arguments(tmp_path, "one"))
    assert ended.exit_code == 0, ended.err
    _train_by_torchrun([*_arguments(tmp_path, "two"), "--share-prefixes"], 2)
    forwarded = [sum(_column(tmp_path / out, "num_tokens")) for out in ("one", "two")]
    assert forwarded[1] < forwarded[0]
    one, two = _weights(tmp_path, "one"), _weights(tmp_path, "two")
    assert one.keys() == two.keys()
    # AdamW divides by the gradient's size, and that of a key's bias is nothing but rounding.
    for name, weight in one.items():
        gap = 1e-3 if name.endswith("k_proj.bias") else 1e-5
        torch.testing.assert_close(two[name], weight, rtol=1e-4, atol=gap)
    norms = [_column(tmp_path / out, "grad_norm") for out in ("one", "two")]
    assert norms[1] == pytest.approx(norms[0], rel=1e-4)
