"""Times an optimizer step of the trainer against a padded step, usual with Hugging Face models.

    python -m benchmarks.train                  a tiny model on the CPU
    python -m benchmarks.train --device cuda    the shape of Qwen2.5-1.5B, random weights

Both run forward and backward over the same samples and take a step of AdamW. The baseline pads the
samples of a batch to the longest one, computes all logits, and takes log-probabilities from them.
If that does not fit into memory, its batches are halved until they do. On a GPU, the packed
attention is also compared with that of the CPU, forward and backward.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, Qwen2Config
from transformers.utils.logging import disable_progress_bar

from benchmarks.machine import describe
from graphcredit.trainer.batching.bin_packing import pack
from graphcredit.trainer.batching.packed_batch import PackedBatch
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.engine.distributed import destroy_process_group
from graphcredit.trainer.engine.engine import TrainingEngine
from graphcredit.trainer.engine.opening import open_engine
from graphcredit.trainer.model.flops import peak_flops, training_flops
from graphcredit.trainer.model.packed_attention import packed_attention

Sample = tuple[list[int], list[int]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """A model's shape and the samples it is trained on."""

    shape: dict[str, Any]
    prompts: tuple[int, int]
    responses: tuple[int, int]
    num_samples: int
    max_tokens: int
    dtype: Literal["float32", "bfloat16"]


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
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--repeats", type=int, default=3, help="show the best of so many runs")
    options = parser.parse_args()
    setting = TINY if options.device == "cpu" else QWEN
    samples = _samples(setting)
    num_tokens = sum(len(prompt) + len(response) for prompt, response in samples)
    disable_progress_bar()
    print(f"{describe()}, torch {torch.__version__}, {torch.get_num_threads()} threads")
    with tempfile.TemporaryDirectory() as directory:
        _write_model(Path(directory), setting)
        config = TrainConfig(
            store=Path(),
            out=Path(),
            model=directory,
            device=options.device,
            dtype=setting.dtype,
            max_tokens=setting.max_tokens,
        )
        engine = open_engine(directory, config)
        name, shape = engine.device_name, engine.shape
        print(f"{name}, {len(samples)} samples, {num_tokens:,} tokens")
        batches = _packed(samples, setting.max_tokens)
        flops = sum(training_flops(shape, batch) for batch in batches)
        packed = _best(partial(_step_packed, engine, batches), options.repeats)
        packed_memory = engine.peak_memory()
        del engine
        padded, max_tokens = _best_padded(directory, setting, samples, options)
        padded_memory = torch.cuda.max_memory_allocated() if options.device == "cuda" else None
    peak = peak_flops(name)
    print(f"{'how':<28}{'seconds':>9}{'tokens/s':>11}{'MFU':>7}{'GiB':>7}{'x padded':>10}")
    for how, seconds, memory in (
        (f"padded, {max_tokens} tokens", padded, padded_memory),
        (f"packed, {setting.max_tokens} tokens", packed, packed_memory),
    ):
        mfu = f"{flops / seconds / peak:.1%}" if peak else "-"
        gib = f"{memory / 2**30:.1f}" if memory else "-"
        rate, ratio = num_tokens / seconds, padded / seconds
        print(f"{how:<28}{seconds:>9.2f}{rate:>11,.0f}{mfu:>7}{gib:>7}{ratio:>10.2f}")
    if options.device == "cuda":
        _compare_attention()
    destroy_process_group()


def _samples(setting: Setting) -> list[Sample]:
    random = np.random.default_rng(0)

    def ids(bounds: tuple[int, int]) -> list[int]:
        return random.integers(setting.shape["vocab_size"], size=random.integers(*bounds)).tolist()

    return [(ids(setting.prompts), ids(setting.responses)) for _ in range(setting.num_samples)]


def _write_model(directory: Path, setting: Setting) -> None:
    torch.manual_seed(0)
    config = Qwen2Config(**setting.shape, max_position_embeddings=8192)
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(directory)


def _packed(samples: list[Sample], max_tokens: int) -> list[PackedBatch]:
    lengths = np.array([len(prompt) + len(response) for prompt, response in samples])
    return [_pack([samples[i] for i in items]) for items in pack(lengths, max_tokens)]


def _pack(samples: list[Sample]) -> PackedBatch:
    lengths = [len(prompt) + len(response) for prompt, response in samples]
    starts = np.cumsum([0, *lengths])
    counts = [len(response) for _, response in samples]
    ones = np.ones(sum(counts), np.float32)
    before = [start + len(p) - 1 for start, (p, _) in zip(starts, samples, strict=False)]
    return PackedBatch(
        input_ids=np.concatenate([p + r for p, r in samples]),
        position_ids=np.concatenate([np.arange(n) for n in lengths]),
        cu_seqlens=starts.astype(np.int32),
        max_length=max(lengths),
        predictor=np.concatenate([b + np.arange(n) for b, n in zip(before, counts, strict=True)]),
        token_ids=np.concatenate([r for _, r in samples]),
        behaviour_logprobs=-ones,
        is_scored=ones > 0,
        temperature=ones,
        advantage=ones,
        weight=ones,
        segment=np.repeat(np.arange(len(samples)), counts),
        steps=np.arange(len(samples)),
        copies=np.ones(int(starts[-1]), np.int64),
    )


def _step_packed(engine: TrainingEngine, batches: list[PackedBatch]) -> None:
    for number, batch in enumerate(batches):
        logprob = engine.score(batch).logprob
        engine.backward(-logprob.sum(), is_last=number == len(batches) - 1)
    engine.update(1e-6)


def _best_padded(
    directory: str, setting: Setting, samples: list[Sample], options: argparse.Namespace
) -> tuple[float, int]:
    """Return the least seconds, and the batch size that fits, in tokens including padding."""
    models: Any = AutoModelForCausalLM
    model = models.from_pretrained(directory, dtype=torch.float32).to(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=options.device == "cuda")
    max_tokens = setting.max_tokens
    while True:
        batches = list(_padded(samples, max_tokens))
        try:
            return _best(
                partial(_step_padded, model, optimizer, batches, setting.dtype),
                options.repeats,
            ), max_tokens
        except torch.OutOfMemoryError:
            optimizer.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()
            max_tokens //= 2


def _padded(samples: list[Sample], max_tokens: int) -> Iterator[list[Sample]]:
    batch: list[Sample] = []
    longest = 0
    for prompt, response in samples:
        longest = max(longest, len(prompt) + len(response))
        if batch and longest * (len(batch) + 1) > max_tokens:
            yield batch
            batch, longest = [], len(prompt) + len(response)
        batch.append((prompt, response))
    yield batch


def _step_padded(
    model: Any, optimizer: torch.optim.Optimizer, batches: list[list[Sample]], dtype: str
) -> None:
    for samples in batches:
        longest = max(len(p) + len(r) for p, r in samples)
        ids = torch.zeros(len(samples), longest, dtype=torch.long)
        mask, chosen = torch.zeros_like(ids), torch.zeros_like(ids, dtype=torch.bool)
        for row, (prompt, response) in enumerate(samples):
            length = len(prompt) + len(response)
            ids[row, :length] = torch.tensor(prompt + response)
            mask[row, :length] = 1
            chosen[row, len(prompt) : length] = True
        ids, mask, chosen = (tensor.to(model.device) for tensor in (ids, mask, chosen))
        with torch.autocast(model.device.type, torch.bfloat16, enabled=dtype == "bfloat16"):
            logits = model(input_ids=ids, attention_mask=mask).logits[:, :-1]
        logprob = logits.float().log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
        (-logprob[chosen[:, 1:]].sum()).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def _best(run: Callable[[], None], repeats: int) -> float:
    """Return the least seconds of some runs, after one run that does not count."""
    run()
    return min(_seconds(run) for _ in range(repeats))


def _seconds(run: Callable[[], None]) -> float:
    _synchronise()
    start = time.perf_counter()
    run()
    _synchronise()
    return time.perf_counter() - start


def _synchronise() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


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
