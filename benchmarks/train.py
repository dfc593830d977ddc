"""Times an optimizer step of the trainer against a padded step.

    python -m benchmarks.train                  a tiny model on the CPU
    python -m benchmarks.train --device cuda    the shape of Qwen2.5-1.5B, random weights

All rows run forward and backward over the same samples and take a step of AdamW. The trainer's step
is that of `graphcredit train`: samples are read from a store, packed, scored, and weighed by a
loss. On a GPU it is timed as it is by default, with compiled layers, and with activations that are
kept. MFU counts the arithmetic of one forward and one backward pass over the tokens that are not
padding, and the head only where a response token is predicted, for every row alike.
"""

import argparse
import gc
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from transformers import AutoModelForCausalLM, Qwen2Config
from transformers.utils.logging import disable_progress_bar, set_verbosity_error

from benchmarks.machine import describe
from benchmarks.padded_step import Sample, padded_step
from graphcredit.trainer.batching.reader import BatchReader
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine.distributed import destroy_process_group
from graphcredit.trainer.engine.opening import open_engine
from graphcredit.trainer.engine.optimizer_step import FrozenPolicies, Unchanged, Updater
from graphcredit.trainer.loss.registry import configure_objective
from graphcredit.trainer.model.flops import peak_flops, training_flops
from graphcredit.trainer.model.layers import model_shape
from graphcredit.trainer.model.loading import load_shapes
from graphcredit.trainer.training import plan_training
from tests.trainer.logs import episode, token_store, turn


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """A model's shape and the samples it is trained on."""

    shape: dict[str, Any]
    prompts: tuple[int, int]
    responses: tuple[int, int]
    num_samples: int
    max_tokens: int
    dtype: Literal["float32", "bfloat16"]
    device: Literal["cpu", "cuda"]


TINY = Setting(
    shape={
        "vocab_size": 8192,
        "hidden_size": 256,
        "intermediate_size": 512,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
    },
    prompts=(40, 900),
    responses=(8, 96),
    num_samples=24,
    max_tokens=4096,
    dtype="float32",
    device="cpu",
)
QWEN = Setting(
    shape={
        "vocab_size": 151_936,
        "hidden_size": 1536,
        "intermediate_size": 8960,
        "num_hidden_layers": 28,
        "num_attention_heads": 12,
        "num_key_value_heads": 2,
        "tie_word_embeddings": True,
    },
    prompts=(2000, 5000),
    responses=(30, 512),
    num_samples=64,
    max_tokens=32_768,
    dtype="bfloat16",
    device="cuda",
)
"""The shape of Qwen2.5-1.5B."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--repeats", type=int, default=3, help="show the best of so many runs")
    options = parser.parse_args()
    setting = TINY if options.device == "cpu" else QWEN
    disable_progress_bar()
    set_verbosity_error()
    print(f"{describe()}, torch {torch.__version__}, {torch.get_num_threads()} threads")
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        samples = write_inputs(folder, setting)
        measure(rows_of(folder, setting, samples, options.repeats), samples, folder, setting)


def write_inputs(folder: Path, setting: Setting) -> list[Sample]:
    """Write a model of random weights, and a store of the samples that are returned."""
    random = np.random.default_rng(0)

    def ids(bounds: tuple[int, int]) -> list[int]:
        return random.integers(setting.shape["vocab_size"], size=random.integers(*bounds)).tolist()

    samples = [(ids(setting.prompts), ids(setting.responses)) for _ in range(setting.num_samples)]
    turns = [turn(*sample, advantage=1.0 - 2.0 * (n % 2)) for n, sample in enumerate(samples)]
    token_store(folder / "store", [episode(f"e{n}", each) for n, each in enumerate(turns)])
    torch.manual_seed(0)
    config = Qwen2Config(**setting.shape, max_position_embeddings=8192)
    with torch.device(setting.device):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.save_pretrained(folder / "model")
    return samples


def measure(
    rows: Mapping[str, Callable[[], float]], samples: list[Sample], folder: Path, setting: Setting
) -> None:
    """Print a line for each row; one that fails says why, and the others follow.

    Args:
        rows: Name to what returns the seconds of a step, as `rows_of` returns them.
        samples: Of the step.
        folder: Has the model and the store.
        setting: Of the model and the samples.
    """
    is_gpu = setting.device == "cuda"
    device = torch.cuda.get_device_name() if is_gpu else "cpu"
    peak, flops, padded = peak_flops(device), _flops_of(folder, setting), None
    num_tokens = sum(len(prompt) + len(response) for prompt, response in samples)
    print(f"{device}, {len(samples)} samples, {num_tokens:,} tokens")
    print(f"{'how':<24}{'seconds':>9}{'tokens/s':>10}{'MFU':>7}{'GiB':>7}{'x padded':>10}")
    for name, run in rows.items():
        gc.collect()  # modules in shards refer to each other
        if is_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        try:
            seconds = run()
        except Exception as error:  # whatever a library raises
            print(f"{name:<24}{type(error).__name__}: {str(error)[:200]}", flush=True)
            continue
        finally:
            destroy_process_group()
        padded = padded or seconds
        mfu = f"{flops / seconds / peak:.1%}" if peak else "-"
        gib = f"{torch.cuda.max_memory_allocated() / 2**30:.1f}" if is_gpu else "-"
        rate = num_tokens / seconds
        print(
            f"{name:<24}{seconds:>9.2f}{rate:>10,.0f}{mfu:>7}{gib:>7}{padded / seconds:>10.2f}",
            flush=True,
        )


def rows_of(
    folder: Path, setting: Setting, samples: list[Sample], repeats: int
) -> dict[str, Callable[[], float]]:
    """Return the ways to make the step, of the model and the store in a folder."""

    def trained(**options: Any) -> Callable[[], float]:
        return lambda: _trained(_config(folder, setting, **options), repeats)

    def padded() -> float:
        step = padded_step(
            folder / "model",
            samples,
            max_tokens=setting.max_tokens,
            device=setting.device,
            dtype=setting.dtype,
        )
        return _best(step, repeats)

    rows = {"padded": padded, "train": trained()}
    if setting.device == "cuda":
        rows["train, compiled"] = trained(compile=True)
        rows["train, kept"] = trained(gradient_checkpointing=False)
        rows["train, kept, compiled"] = trained(gradient_checkpointing=False, compile=True)
    return rows


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


def _config(folder: Path, setting: Setting, **options: Any) -> TrainConfig:
    return TrainConfig(
        store=folder / "store",
        out=folder / "out",
        model=str(folder / "model"),
        device=setting.device,
        dtype=setting.dtype,
        batch_size=setting.num_samples,
        max_tokens=setting.max_tokens,
        kl_coefficient=0.0,
        **options,
    )


def _trained(config: TrainConfig, repeats: int) -> float:
    """Return the seconds of the trainer's optimizer step: reading, both passes, the update."""
    config, _, plan, _ = plan_training(config)
    engine = open_engine(config.model, config)
    objective = configure_objective(config.objective, config.objective_options)
    policies = FrozenPolicies(old=Unchanged(), reference=None)
    updater = Updater(config, engine, plan, BatchReader(plan.index), objective, policies)
    return _best(lambda: list(updater.run(0)), repeats)


def _flops_of(folder: Path, setting: Setting) -> float:
    config, _, plan, _ = plan_training(_config(folder, setting))
    shape, reader = model_shape(load_shapes(config.model, config)), BatchReader(plan.index)
    (micro_batches,) = plan.micro_batches(0, 1)
    return sum(training_flops(shape, reader.read(micro)) for micro in micro_batches)


if __name__ == "__main__":
    main()
