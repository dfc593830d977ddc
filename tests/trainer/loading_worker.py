"""Work for several processes: load a model in shards, and compare it with the model whole."""

from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.distributed.tensor import DTensor

from graphcredit.store.errors import InputError
from graphcredit.trainer.engine.distributed import destroy_process_group
from graphcredit.trainer.engine.engine import TrainingEngine
from graphcredit.trainer.engine.opening import open_engine
from graphcredit.trainer.model.loading import load_model
from tests.trainer import rank_worker


def same(directory: Path, cases: list[tuple[str, dict[str, Any]]]) -> None:
    """Compare the models of some directories, each with options, and save each again."""
    torch.set_num_threads(1)
    for name, options in cases:
        path = str(directory / name)
        config = rank_worker.config(path, 0).changed(**options)
        engine = open_engine(path, config)
        engine.save_pretrained(directory / f"{name}-saved")
        assert_same(engine, load_model(path, config))
    destroy_process_group()


def refused(directory: Path, name: str, reason: str) -> None:
    """Be told by every process what is wrong with a model."""
    torch.set_num_threads(1)
    path = str(directory / name)
    with pytest.raises(InputError, match=reason):
        open_engine(path, rank_worker.config(path, 0))
    destroy_process_group()


def assert_same(engine: TrainingEngine, expected: nn.Module) -> None:
    """Compare weights, buffers, ties and what is trained, to the bit."""
    found = engine._scorer
    for ours, theirs in (
        (dict(found.named_buffers()), dict(expected.named_buffers())),
        (_parameters(found), _parameters(expected)),
    ):
        assert ours.keys() == theirs.keys()
        for name, tensor in theirs.items():
            shard = ours[name]
            assert shard.requires_grad == tensor.requires_grad
            assert shard.dtype == tensor.dtype
            whole = shard.full_tensor() if isinstance(shard, DTensor) else shard
            assert torch.equal(whole, tensor), name
    assert _tied(found) == _tied(expected)


def _parameters(module: nn.Module) -> dict[str, nn.Parameter]:
    return dict(module.named_parameters(remove_duplicate=False))


def _tied(module: nn.Module) -> list[list[str]]:
    names = sorted(_parameters(module).items(), key=lambda item: id(item[1]))
    groups = (group for _, group in groupby(names, key=lambda item: id(item[1])))
    return sorted(sorted(name for name, _ in group) for group in groups)
