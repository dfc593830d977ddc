"""Work for several processes: load a model in shards, and compare it with the model whole."""

from collections.abc import Generator
from contextlib import contextmanager
from copy import deepcopy
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from transformers import conversion_mapping
from transformers.core_model_loading import Transpose, WeightConverter

from graphcredit.store.errors import InputError
from graphcredit.trainer.engine import sharded_loading, weight_files
from graphcredit.trainer.engine.distributed import destroy_process_group
from graphcredit.trainer.engine.engine import TrainingEngine
from graphcredit.trainer.engine.opening import open_engine
from graphcredit.trainer.model.head import LogitRule
from graphcredit.trainer.model.loading import load_model
from tests.trainer import rank_worker


def same(directory: Path, cases: list[tuple[str, dict[str, Any]]]) -> None:
    """Compare the models of some directories, each with options, and save each again.

    Nobody loads a model whole, and each process reads its rows alone.
    """
    torch.set_num_threads(1)
    for name, options in cases:
        path = str(directory / name)
        config = rank_worker.config(path, 0).changed(**options)
        with pytest.MonkeyPatch.context() as patch:
            num_read = _count_reads(patch)
            patch.setattr(sharded_loading, "load_weights", _refuse)
            engine = open_engine(path, config)
        assert engine.notices == []
        engine.save_pretrained(directory / f"{name}-saved")
        assert_same(engine, load_model(path, config, adapter_seed=config.adapter_seed))
        mine = [p for n, p in engine._scorer.named_parameters() if ".lora_" not in n]
        assert num_read[0] == sum(p.to_local().numel() for p in mine), name
    destroy_process_group()


def converted(directory: Path, name: str) -> None:
    """Be given shards of a model that the first process loads whole, for its conversion."""
    torch.set_num_threads(1)
    path = str(directory / name)
    config = rank_worker.config(path, 0)
    with transposed_gates():
        engine = open_engine(path, config)
        assert [f"{path} is loaded whole" in each for each in engine.notices] == [True]
        assert_same(engine, load_model(path, config, adapter_seed=""))
    destroy_process_group()


@contextmanager
def transposed_gates() -> Generator[None]:
    """Let transformers transpose the gates of Qwen2 when it loads them."""
    gate = "mlp.gate_proj.weight"
    rule = WeightConverter(source_patterns=gate, target_patterns=gate, operations=[Transpose(0, 1)])
    with pytest.MonkeyPatch.context() as patch:
        declared = conversion_mapping.get_checkpoint_conversion_mapping
        patch.setattr(
            conversion_mapping,
            "get_checkpoint_conversion_mapping",
            lambda key: [deepcopy(rule)] if key == "qwen2" else declared(key),
        )
        yield


def refused(directory: Path, name: str, reason: str) -> None:
    """Be told by every process what is wrong with a model."""
    torch.set_num_threads(1)
    path = str(directory / name)
    with pytest.raises(InputError, match=reason):
        open_engine(path, rank_worker.config(path, 0))
    destroy_process_group()


def unlike(directory: Path, name: str) -> None:
    """Find in shards that log-probabilities cannot be reproduced."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graphcredit.trainer.model.logprobs.logit_rule", lambda config: LogitRule())
        refused(directory, name, r"differ by up to .* nats: GraniteForCausalLM")


def assert_same(engine: TrainingEngine, expected: nn.Module) -> None:
    """Compare weights, buffers, ties and what is trained, to the bit."""
    found = engine._scorer
    for ours, theirs in (
        (dict(found.named_buffers()), dict(expected.named_buffers())),
        (_parameters(found), _parameters(expected)),
    ):
        assert ours.keys() == theirs.keys()
        for name, tensor in theirs.items():
            own = ours[name]
            assert own.requires_grad == tensor.requires_grad
            assert own.dtype == tensor.dtype
            whole = own.full_tensor() if isinstance(own, DTensor) else own
            assert torch.equal(whole, tensor), name
    assert _tied(found) == _tied(expected)


def _parameters(module: nn.Module) -> dict[str, nn.Parameter]:
    return dict(module.named_parameters(remove_duplicate=False))


def _tied(module: nn.Module) -> list[list[str]]:
    names = sorted(_parameters(module).items(), key=lambda item: id(item[1]))
    groups = (group for _, group in groupby(names, key=lambda item: id(item[1])))
    return sorted(sorted(name for name, _ in group) for group in groups)


def _count_reads(patch: pytest.MonkeyPatch) -> list[int]:
    """Return a list whose only number grows by the numbers that are read from files."""
    count = [0]
    read_rows = weight_files.read_rows

    class Counted:
        def __init__(self, stored: Any):
            self._stored = stored

        def __getitem__(self, rows: Any) -> Tensor:
            found = self._stored[rows]
            count[0] += found.numel()
            return found

    patch.setattr(weight_files, "read_rows", lambda s, *where: read_rows(Counted(s), *where))
    return count


def _refuse(directory: Path) -> Any:
    raise AssertionError(f"{directory} must not be loaded whole")
