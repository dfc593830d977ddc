"""Times an optimizer step of the trainer against TRL, and against a padded step.

    python -m benchmarks.train                  a tiny model on the CPU
    python -m benchmarks.train --device cuda    the shape of Qwen2.5-1.5B, random weights

All run forward and backward over the same samples and take a step of AdamW. The trainer's is that
of `graphcredit train`: the samples are read from a store, packed, scored, and weighed by a loss. On
a GPU it is timed as it is by default, with compiled layers (`--compile`), and with activations that
are kept (`--no-gradient-checkpointing`); TRL as it is, which computes them again, and keeping them.
What does not fit into memory is tried with half as much, but for `train` as it is. MFU counts the
arithmetic of one forward and one backward pass over the tokens that are not padding, and the head
only where a response token is predicted, for every row alike. On a GPU, the packed attention is
also compared with that of the CPU, forward and backward.
"""

import argparse
import os
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers.utils.logging import disable_progress_bar, set_verbosity_error

from benchmarks.machine import describe
from benchmarks.train_peers import grpo_seconds, padded_seconds
from benchmarks.train_setting import (
    QWEN,
    TINY,
    Sample,
    Setting,
    random_samples,
    write_model,
    write_store,
)
from benchmarks.train_timing import best, fitting, free_memory
from graphcredit.trainer.batching.reader import BatchReader
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine.distributed import destroy_process_group
from graphcredit.trainer.engine.opening import open_engine
from graphcredit.trainer.engine.optimizer_step import FrozenPolicies, Unchanged, Updater
from graphcredit.trainer.loss.registry import configure_objective
from graphcredit.trainer.model.flops import peak_flops, training_flops
from graphcredit.trainer.model.layers import model_shape
from graphcredit.trainer.model.loading import load_shapes
from graphcredit.trainer.model.packed_attention import packed_attention
from graphcredit.trainer.training import plan_training

_HEADER = f"{'how':<44}{'seconds':>9}{'tokens/s':>10}{'MFU':>7}{'GiB':>7}{'x padded':>10}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A way to make the step."""

    name: str
    unit: str
    """What is halved until it fits."""
    first: int
    run: Callable[[int], float]
    """Seconds of the step, by how many units a micro-batch has."""
    halves: bool = True
    """Whether it may be halved."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--repeats", type=int, default=3, help="show the best of so many runs")
    parser.add_argument("--only", default="", help="only rows whose name has this text")
    options = parser.parse_args()
    setting = TINY if options.device == "cpu" else QWEN
    disable_progress_bar()
    set_verbosity_error()
    # Several would be used by transformers' Trainer, and by it alone.
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")
    print(f"{describe()}, torch {torch.__version__}, {torch.get_num_threads()} threads")
    with tempfile.TemporaryDirectory() as folder:
        samples = random_samples(setting)
        write_model(Path(folder) / "model", setting)
        write_store(Path(folder) / "store", samples)
        rows = rows_of(Path(folder), setting, samples, options.repeats)
        measure(
            [row for row in rows if options.only in row.name],
            samples,
            flops_of(Path(folder), setting),
            setting,
        )
    if setting.device == "cuda":
        _compare_attention()


def measure(rows: list[Row], samples: list[Sample], flops: float, setting: Setting) -> None:
    """Print a line for each row; one that fails says why, and the others follow."""
    device = torch.cuda.get_device_name() if setting.device == "cuda" else "cpu"
    peak, padded = peak_flops(device), None
    num_tokens = sum(len(prompt) + len(response) for prompt, response in samples)
    print(f"{device}, {len(samples)} samples, {num_tokens:,} tokens")
    print(_HEADER)
    for row in rows:
        try:
            least = 1 if row.halves else row.first
            seconds, size, gib = fitting(row.run, row.first, least=least)
        except Exception as error:  # whatever a library raises
            print(f"{row.name:<44}{type(error).__name__}: {str(error)[:200]}", flush=True)
            if not isinstance(error, (ImportError, torch.OutOfMemoryError)):
                traceback.print_exc()
            continue
        finally:
            destroy_process_group()
        padded = padded or seconds
        mfu = f"{flops / seconds / peak:.1%}" if peak else "-"
        memory = f"{gib:.1f}" if gib else "-"
        name = f"{row.name}, {size:,} {row.unit}"
        rate, ratio = num_tokens / seconds, padded / seconds
        print(
            f"{name:<44}{seconds:>9.2f}{rate:>10,.0f}{mfu:>7}{memory:>7}{ratio:>10.2f}", flush=True
        )
    free_memory()


def rows_of(folder: Path, setting: Setting, samples: list[Sample], repeats: int) -> Iterator[Row]:
    """Yield the ways to make the step, of the model and the store in a folder."""
    model = folder / "model"

    def padded(size: int) -> float:
        return padded_seconds(model, setting, samples, size, repeats)

    def trained(size: int, **options: Any) -> float:
        return _trained(_config(folder, setting, size, **options), repeats)

    def by_trl(rows: int, *, keeps: bool = False) -> float:
        return grpo_seconds(model, setting, samples, rows, repeats, keeps_activations=keeps)

    budget: dict[str, Any] = {"unit": "tokens", "first": setting.max_tokens}
    yield Row(name="padded", run=padded, **budget)
    yield Row(name="train", run=trained, halves=False, **budget)
    if setting.device == "cuda":
        kept = partial(trained, gradient_checkpointing=False)
        yield Row(name="train, compiled", run=partial(trained, compile=True), **budget)
        yield Row(name="train, kept", run=kept, **budget)
        yield Row(name="train, kept, compiled", run=partial(kept, compile=True), **budget)
    yield Row(name="TRL GRPOTrainer", run=by_trl, unit="rows", first=8)
    if setting.device == "cuda":
        yield Row(name="TRL, kept", run=partial(by_trl, keeps=True), unit="rows", first=8)


def _config(folder: Path, setting: Setting, max_tokens: int, **options: Any) -> TrainConfig:
    return TrainConfig(
        store=folder / "store",
        out=folder / "out",
        model=str(folder / "model"),
        device=setting.device,
        dtype=setting.dtype,
        batch_size=setting.num_samples,
        max_tokens=max_tokens,
        kl_coefficient=0.0,
        **options,
    )


def _trained(config: TrainConfig, repeats: int) -> float:
    """Return the seconds of the trainer's optimizer step: reading, both passes, the update."""
    config, _, plan, _ = plan_training(config)
    engine = open_engine(config.model, config)
    objective = configure_objective(config.objective, config.objective_options)
    policies = FrozenPolicies(old=Unchanged(), reference=None)
    updater = Updater(config, config, engine, plan, BatchReader(plan.index), objective, policies)
    return best(lambda: list(updater.run(0)), repeats)


def flops_of(folder: Path, setting: Setting) -> float:
    """Return the operations that MFU counts."""
    config = _config(folder, setting, setting.max_tokens)
    config, _, plan, _ = plan_training(config)
    shape, reader = model_shape(load_shapes(config.model, config)), BatchReader(plan.index)
    (micro_batches,) = plan.micro_batches(0, 1)
    return sum(training_flops(shape, reader.read(micro)) for micro in micro_batches)


def _compare_attention() -> None:
    """Print the relative gap between packed attention on GPU and CPU, forward and backward."""
    lengths = torch.tensor([700, 33, 1500])
    total = int(lengths.sum())
    bounds = torch.cat([torch.zeros(1), lengths.cumsum(0)]).to(torch.int32)
    torch.manual_seed(0)
    inputs = [torch.randn(1, heads, total, 128).bfloat16() for heads in (12, 2, 2)]
    found = {device: _attend(device, inputs, bounds, total) for device in ("cpu", "cuda")}
    for name, on_cpu, on_gpu in zip(
        ("output", "query", "key", "value"), found["cpu"], found["cuda"], strict=True
    ):
        what = "packed attention, output" if name == "output" else f"gradient of {name}"
        gap = (on_cpu.float() - on_gpu.float().cpu()).norm() / on_cpu.float().norm()
        print(f"{what:<28}relative gap to the CPU {gap:.2e}")


def _attend(device: str, inputs: list[Tensor], bounds: Tensor, longest: int) -> list[Tensor]:
    query, key, value = (x.to(device).requires_grad_() for x in inputs)
    output, _ = packed_attention(
        torch.nn.Module(),
        query,
        key,
        value,
        None,
        cu_seq_lens_q=bounds.to(device),
        max_length_q=longest,
    )
    output.float().square().sum().backward()
    gradients = (x.grad for x in (query, key, value))
    return [output.detach(), *(gradient for gradient in gradients if gradient is not None)]


if __name__ == "__main__":
    main()
