"""Times an optimizer step of the trainer against a padded step, and against TRL's.

    python -m benchmarks.train                  a tiny model on the CPU
    python -m benchmarks.train --device cuda    the shape of Qwen2.5-1.5B, random weights

All rows run forward and backward over the same samples and take a step of AdamW. The trainer's step
is that of `graphcredit train`: samples are read from a store, packed, scored, and weighed by a
loss. On a GPU it is timed as it is by default, with compiled layers, with activations that are
kept, and with adapters. MFU counts the arithmetic of one forward and one backward pass over the
tokens that are not padding, and the head only where a response token is predicted, for every row
alike. GiB is the peak of tensors on the GPU, and `planned` what `train --dry-run` says of it.
"""

import argparse
import gc
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers.utils.logging import disable_progress_bar, set_verbosity_error

from benchmarks.machine import describe
from benchmarks.padded_step import Sample, padded_step
from benchmarks.train_inputs import LARGE, SMALLER, TINY, Setting, sized, train_config, write_inputs
from graphcredit.trainer.batching.reader import BatchReader
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine.distributed import destroy_process_group
from graphcredit.trainer.engine.opening import open_engine
from graphcredit.trainer.engine.optimizer_step import FrozenPolicies, Unchanged, Updater
from graphcredit.trainer.loss.registry import configure_objective
from graphcredit.trainer.model.flops import peak_flops, training_flops
from graphcredit.trainer.model.layers import model_shape
from graphcredit.trainer.model.loading import load_shapes
from graphcredit.trainer.preview import preview
from graphcredit.trainer.training import plan_training

_ON_GPU: Mapping[str, Mapping[str, Any]] = {
    "train, compiled": {"compile": True},
    "train, kept": {"gradient_checkpointing": False},
    "train, kept, compiled": {"gradient_checkpointing": False, "compile": True},
    "train, LoRA": {"lora_rank": 16},
}
"""Rows of the trainer that a CPU is too slow for, and their options."""


class Step(NamedTuple):
    """What the step took."""

    seconds: float
    peak: int | None
    """Bytes of tensors on the GPU."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A way to make the step."""

    run: Callable[[], Step]
    planned: Callable[[], int] | None = None
    """Returns the bytes that it takes by the trainer's plan, if it is the trainer's."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--small", action="store_true", help="the shape of Qwen2.5-0.5B (cuda)")
    parser.add_argument("--tokens", type=int, help="of a micro-batch, at most")
    parser.add_argument("--samples", type=int, help="of an optimizer step")
    parser.add_argument("--repeats", type=int, default=3, help="show the best of so many runs")
    parser.add_argument("--rows", nargs="+", help="names of rows; all by default")
    options = parser.parse_args()
    setting = TINY if options.device == "cpu" else LARGE
    setting = replace(setting, shape=SMALLER) if options.small else setting
    setting = sized(
        setting, options.tokens or setting.max_tokens, options.samples or setting.num_samples
    )
    disable_progress_bar()
    set_verbosity_error()
    print(f"{describe()}, torch {torch.__version__}, {torch.get_num_threads()} threads")
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        samples = write_inputs(folder, setting)
        rows = rows_of(folder, setting, samples, options.repeats, options.rows)
        measure(rows, samples, folder, setting)


def measure(rows: Mapping[str, Row], samples: list[Sample], folder: Path, setting: Setting) -> None:
    """Print a line for each row; one that fails says why, and the others follow.

    Args:
        rows: By name, as `rows_of` returns them.
        samples: Of the step.
        folder: Has the model and the store.
        setting: Of the model and the samples.
    """
    is_gpu = setting.device == "cuda"
    device = torch.cuda.get_device_name() if is_gpu else "cpu"
    peak, flops, first = peak_flops(device), _flops_of(folder, setting), None
    num_tokens = sum(len(prompt) + len(response) for prompt, response in samples)
    print(
        f"{device}, {len(samples)} samples, {num_tokens:,} tokens, {setting.max_tokens:,} at once"
    )
    columns = ("seconds", 9), ("tokens/s", 10), ("MFU", 7), ("GiB", 7), ("planned", 9)
    print(f"{'how':<24}" + "".join(f"{name:>{width}}" for name, width in columns) + " x first")
    for name, row in rows.items():
        gc.collect()  # modules in shards refer to each other
        if is_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        try:
            seconds, bytes_used = row.run()
        except Exception as error:  # whatever a library raises
            print(f"{name:<24}{type(error).__name__}: {str(error)[:200]}", flush=True)
            continue
        finally:
            destroy_process_group()
        first = first or seconds
        mfu = f"{flops / seconds / peak:.1%}" if peak else "-"
        gib = "-" if bytes_used is None else f"{bytes_used / 2**30:.1f}"
        planned = f"{row.planned() / 2**30:.1f}" if is_gpu and row.planned else "-"
        rate = num_tokens / seconds
        print(
            f"{name:<24}{seconds:>9.2f}{rate:>10,.0f}{mfu:>7}{gib:>7}{planned:>9}"
            f"{first / seconds:>8.2f}",
            flush=True,
        )


def rows_of(
    folder: Path,
    setting: Setting,
    samples: list[Sample],
    repeats: int,
    names: Collection[str] | None = None,
) -> dict[str, Row]:
    """Return the ways to make the step, of the model and the store in a folder.

    Args:
        folder: Has the model and the store.
        setting: Of the model and the samples.
        samples: Of the step.
        repeats: Runs that count.
        names: Of the rows that are wanted; all by default.
    """
    common: dict[str, Any] = {
        "max_tokens": setting.max_tokens,
        "device": setting.device,
        "dtype": setting.dtype,
    }

    def trained(options: Mapping[str, Any]) -> Row:
        config = train_config(folder, setting, **options)
        return Row(run=partial(_trained, config, repeats), planned=partial(_planned, config))

    def padded() -> Step:
        seconds = _best(padded_step(folder / "model", samples, **common), repeats)
        return Step(seconds, _peak_memory())

    def of_trl() -> Step:
        from benchmarks.trl_step import trl_seconds

        seconds = trl_seconds(folder / "model", samples, repeats=repeats, **common)
        return Step(seconds, _peak_memory())

    others = _ON_GPU if setting.device == "cuda" else {}
    rows = {
        "padded": Row(run=padded),
        "TRL": Row(run=of_trl),
        **{name: trained(options) for name, options in {"train": {}, **others}.items()},
    }
    return {name: row for name, row in rows.items() if names is None or name in names}


def _best(run: Callable[[], object], repeats: int) -> float:
    """Return the least seconds of some runs, after one run that does not count."""
    run()
    seconds: list[float] = []
    for _ in range(repeats):
        started = _synchronised_clock()
        run()
        seconds.append(_synchronised_clock() - started)
    return min(seconds)


def _synchronised_clock() -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def _peak_memory() -> int | None:
    return torch.cuda.max_memory_allocated() if torch.cuda.is_available() else None


def _planned(config: TrainConfig) -> int:
    return preview(config, num_processes=1)["memory"]["on_device"]


def _trained(config: TrainConfig, repeats: int) -> Step:
    """Make the trainer's optimizer step: reading, both passes, the update."""
    config, plan, _ = plan_training(config)
    engine = open_engine(config.model, config)
    objective = configure_objective(config.objective, config.objective_options)
    policies = FrozenPolicies(old=Unchanged(), reference=None)
    updater = Updater(config, engine, plan, BatchReader(plan.index), objective, policies)
    peaks: list[int] = []

    def run() -> None:
        # The engine says how much it was since it was last asked.
        peaks.extend(int(metrics["peak_memory"] or 0) for _, metrics in updater.run(0))

    return Step(_best(run, repeats), max(peaks) or None)


def _flops_of(folder: Path, setting: Setting) -> float:
    config, plan, _ = plan_training(train_config(folder, setting))
    shape, reader = model_shape(load_shapes(config.model, config)), BatchReader(plan.index)
    (micro_batches,) = plan.micro_batches(0, 1)
    return sum(training_flops(shape, reader.read(micro)) for micro in micro_batches)


if __name__ == "__main__":
    main()
