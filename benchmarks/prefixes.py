"""Counts the tokens that shared prefixes save on logs of games, and times them.

    python -m benchmarks.prefixes [--tasks 8] [--batch-size 512] [--count]

A random player plays ALFWorld in groups of 8, in the tokens of a model. The same play is recorded
with two templates: the package's own, which shows the last five steps, and one that shows all steps
so far, so that prompts grow. A third log has the first step of each trajectory of the former only:
the single-turn prompts of groups. Each is planned as the trainer does, with and without shared
prefixes, and the first optimizer step of each plan is computed forward and backward.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoTokenizer, Qwen2Config, Qwen2ForCausalLM
from transformers.utils.logging import disable_progress_bar

from benchmarks.machine import describe
from graphcredit.collector.policies import language
from graphcredit.collector.policies.train_tokenizer import train_tokenizer
from graphcredit.store import open_store, read_steps
from graphcredit.trainer.batching.packed_batch import PackedBatch, Sample, pack_samples
from graphcredit.trainer.batching.plan import TrainingPlan, make_plan
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.data.prefix_order import PrefixOrder, sort_by_prefix
from graphcredit.trainer.engine.engine import TrainingEngine
from graphcredit.trainer.engine.opening import open_engine
from tests.trainer.indexes import index_of

MAX_TOKENS = 8192
_SHAPE: dict[str, Any] = {
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 8192,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=512, help="steps of an optimizer step")
    parser.add_argument("--count", action="store_true", help="only count; compute nothing")
    options = parser.parse_args()
    tasks, batch_size = options.tasks, options.batch_size
    disable_progress_bar()
    print(f"{describe()}, torch {torch.__version__}, {torch.get_num_threads()} threads")
    print(
        "tokens: through the model today, with shared prefixes, and distinct in an optimizer step"
    )
    columns = ("log", "steps", "logged", "today", "shared", "distinct", "ratio", "s", "s shared")
    print(f"{columns[0]:<14}" + "".join(f"{name:>10}" for name in columns[1:]) + f"{'gap':>10}")
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        _make_model(Path(folder), model, tasks)
        config = TrainConfig(store=Path(), out=Path(), model=str(model), device="cpu")
        engine = None if options.count else open_engine(str(model), config)
        recent = _play(Path(folder) / "recent", model, tasks, "alfworld")
        growing = _play(Path(folder) / "growing", model, tasks, str(_growing(Path(folder))))
        _compare("last 5 steps", [sample for _, sample in recent], engine, batch_size)
        _compare("all steps", [sample for _, sample in growing], engine, batch_size)
        _compare(
            "single turn", [sample for number, sample in recent if number == 0], engine, batch_size
        )


def _make_model(folder: Path, model: Path, tasks: int) -> None:
    """Write a model of random weights, whose tokenizer knows the words of the games."""
    store = folder / "texts"
    _collect(store, tasks, "--policy", "random")
    tables = list(read_steps(open_store(store), columns=("observation", "action")))
    texts = (str(text) for t in tables for name in t.column_names for text in t[name].to_pylist())
    train_tokenizer(model, texts, num_tokens=4096)
    words = AutoTokenizer.from_pretrained(model)
    torch.manual_seed(0)
    config = Qwen2Config(vocab_size=len(words), eos_token_id=words.eos_token_id, **_SHAPE)
    Qwen2ForCausalLM(config).save_pretrained(model)


def _growing(folder: Path) -> Path:
    """Write the package's template, with all steps so far."""
    own = Path(language.__path__[0]) / "templates" / "alfworld.toml"
    path = folder / "growing.toml"
    text = own.read_text(encoding="utf-8")
    path.write_text(text.replace("history_length = 5", "history_length = 1000"), encoding="utf-8")
    return path


def _play(store: Path, model: Path, tasks: int, template: str) -> list[tuple[int, Sample]]:
    """Return the number of each step in its trajectory, and its tokens."""
    _collect(store, tasks, "--policy", f"tutor:{model}", "--template", template)
    return list(_steps(store))


def _collect(store: Path, tasks: int, *options: str) -> None:
    command = [sys.executable, "-m", "graphcredit.cli.main", "collect", str(store)]
    play = ["--env", "alfworld", "--tasks", str(tasks), "--quiet"]
    subprocess.run([*command, *play, *options], check=True, stdout=subprocess.DEVNULL)


def _steps(store: Path) -> Iterator[tuple[int, Sample]]:
    columns = ("step_index", "prompt_ids", "response_ids")
    for table in read_steps(open_store(store), columns=columns):
        for number, *ids in zip(*(table[name].to_pylist() for name in columns), strict=True):
            prompt, response = (np.array(each, np.int32) for each in ids)
            yield number, Sample(prompt, response, -np.ones(len(response), np.float32), 1.0)


def _compare(
    name: str, samples: Sequence[Sample], engine: TrainingEngine | None, batch_size: int
) -> None:
    tokens = [sample.tokens for sample in samples]
    order, shared = sort_by_prefix(tokens)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    length = np.array([len(each) for each in tokens])
    prefixes = PrefixOrder(rank=rank, shared=shared, length=length)
    whole = [sample.prompt.tobytes() + b"|" + sample.response.tobytes() for sample in samples]
    index = index_of(
        [len(sample.response) for sample in samples],
        prompts=[len(sample.prompt) for sample in samples],
        sequence=np.unique(whole, return_inverse=True)[1].tolist(),
    )
    plans = [
        make_plan(
            index,
            seed=0,
            epochs=1,
            batch_size=batch_size,
            max_tokens=MAX_TOKENS,
            aggregation="token-mean",
            prefixes=chosen,
        )
        for chosen in (None, prefixes)
    ]
    today, with_shared = (
        sum(plan.statistics(n, 1).num_tokens for n in range(len(plan.updates))) for plan in plans
    )
    distinct = sum(int(prefixes.runs(steps).new.sum()) for steps in plans[0].updates)
    numbers = (len(samples), int(length.sum()), today, with_shared, distinct)
    line = "".join(f"{number:>10,}" for number in numbers) + f"{today / with_shared:>10.2f}"
    if engine is not None:
        results = [_timed(plan, samples, engine, shares=n == 1) for n, plan in enumerate(plans)]
        (seconds, gradient), (seconds_shared, gradient_shared) = results
        gap = (gradient_shared - gradient).norm() / gradient.norm()
        line += f"{seconds:>10.1f}{seconds_shared:>10.1f}{gap:>10.1e}"
    print(f"{name:<14}{line}", flush=True)


def _timed(
    plan: TrainingPlan, samples: Sequence[Sample], engine: TrainingEngine, *, shares: bool
) -> tuple[float, torch.Tensor]:
    """Return the seconds of the first optimizer step, and its gradient."""
    (micro_batches,) = plan.micro_batches(0, 1)
    started = time.perf_counter()
    for micro in micro_batches:
        batch: PackedBatch = pack_samples(
            [samples[step] for step in micro.steps],
            advantage=np.ones(len(micro.steps)),
            weight=micro.weight,
            steps=micro.steps,
            shares_prefixes=shares,
        )
        weight = engine.put(batch.weight)
        loss = -(weight * engine.score(batch).logprob).sum()
        engine.backward(loss)
    seconds = time.perf_counter() - started
    scorer: Any = vars(engine)["_scorer"]
    parameters = list(scorer.parameters())
    gradient = torch.cat([p.grad.flatten() for p in parameters if p.grad is not None])
    for parameter in parameters:
        parameter.grad = None
    return seconds, gradient


if __name__ == "__main__":
    main()
