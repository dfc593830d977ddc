"""Two machines train together: they share the output, and each may have its own copy of a store."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from graphcredit.store.copying.copy_store import copy_store
from tests.cli.in_process import run
from tests.trainer import nodes_worker
from tests.trainer.logs import random_episodes, token_store
from tests.trainer.models import save_tiny_model
from tests.trainer.ranks import run_ranks

pytestmark = pytest.mark.slow


def _refusals(tmp_path: Path, stores: tuple[str, str], outs: tuple[str, str]) -> list[str]:
    """Return what each of two processes said."""
    model = save_tiny_model(tmp_path / "m")
    said = tmp_path / "said"
    said.mkdir()
    given = (tuple(str(tmp_path / name) for name in names) for names in (stores, outs))
    assert run_ranks(2, nodes_worker.trained, *given, model, str(said)) == [0, 0]
    return [(said / str(rank)).read_text(encoding="utf-8") for rank in range(2)]


def test_an_output_that_is_not_shared_is_refused(tmp_path: Path):
    token_store(tmp_path / "s", random_episodes(0, 8))
    said = _refusals(tmp_path, ("s", "s"), ("mine", "yours"))
    assert "mine must be one directory that all processes see" in said[0]
    assert "for process 1 on" in said[0]
    assert "yours must be one directory that all processes see" in said[1]
    assert sorted(path.name for path in (tmp_path / "mine").iterdir()) == [".lock", "config.toml"]


def test_machines_with_other_steps_are_refused(tmp_path: Path):
    token_store(tmp_path / "s", random_episodes(0, 8))
    token_store(tmp_path / "t", random_episodes(1, 8))
    said = _refusals(tmp_path, ("s", "t"), ("o", "o"))
    assert said[0] == said[1]
    assert "process 1 on" in said[0]
    assert "has another plan than process 0" in said[0]


def _training(tmp_path: Path, store: str, out: str) -> tuple[str, ...]:
    """Return the command that trains from a store into an output."""
    return (
        *("train", str(tmp_path / store), "--model", str(tmp_path / "m")),
        *("--out", str(tmp_path / out), "--device", "cpu", "--max-tokens", "64"),
        *("--learning-rate", "1e-3", "--allow-mismatch", "--no-tensorboard"),
    )


def test_two_machines_train_the_weights_of_one(tmp_path: Path):
    """Each has a launcher, and its own copy of the store."""
    token_store(tmp_path / "s", random_episodes(0, 16))
    copy_store(str(tmp_path / "s"), str(tmp_path / "t"))
    save_tiny_model(tmp_path / "m")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    together = [*("-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1")]
    together += ["--master-addr", "127.0.0.1", "--master-port", port, "--node-rank"]
    processes = [
        subprocess.Popen(
            [
                *(sys.executable, *together, node, "-m", "graphcredit.cli.main"),
                *_training(tmp_path, store, "two"),
            ],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for node, store in (("0", "s"), ("1", "t"))
    ]
    alone = run(*_training(tmp_path, "s", "one"))
    assert alone.exit_code == 0, alone.err
    for process in processes:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    one, two = (load_file(tmp_path / out / "model" / "model.safetensors") for out in ("one", "two"))
    assert one.keys() == two.keys()
    # AdamW divides by the gradient's size, and that of a key's bias is nothing but rounding.
    for name, weight in one.items():
        gap = 1e-3 if name.endswith("k_proj.bias") else 1e-5
        torch.testing.assert_close(two[name], weight, rtol=1e-4, atol=gap)
