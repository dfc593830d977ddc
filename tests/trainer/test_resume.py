"""`graphcredit train` spread over processes by torchrun: the same weights come out."""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from tests.forks import FORKS
from tests.resumed_kills import RESUMED, train


@contextmanager
def _same_signals() -> Iterator[None]:
    """Take back what torchrun does at signals: it means to be a process of its own."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def _column(out: Path, name: str) -> list[float]:
    lines = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)[name] for line in lines]


@pytest.mark.slow
def test_two_processes_that_share_prefixes_train_the_weights_of_one_that_does_not(tmp_path: Path):
    RESUMED["train, shared"].prepare(tmp_path)
    train(tmp_path, "one")
    launch = LaunchConfig(1, 1, 2, rdzv_backend="c10d", start_method=FORKS.get_start_method())
    with _same_signals():
        elastic_launch(launch, train)(tmp_path, "two", "--share-prefixes")
    forwarded = [sum(_column(tmp_path / out, "num_tokens")) for out in ("one", "two")]
    assert forwarded[1] < forwarded[0]
    one, two = (load_file(tmp_path / out / "model/model.safetensors") for out in ("one", "two"))
    assert one.keys() == two.keys()
    # AdamW divides by the gradient's size, and that of a key's bias is nothing but rounding.
    for name, weight in one.items():
        gap = 1e-3 if name.endswith("k_proj.bias") else 1e-5
        torch.testing.assert_close(two[name], weight, rtol=1e-4, atol=gap)
    norms = [_column(tmp_path / out, "grad_norm") for out in ("one", "two")]
    assert norms[1] == pytest.approx(norms[0], rel=1e-4)
