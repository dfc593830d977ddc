"""Counts the tokens that shared prefixes save on logs of games.

    python -m benchmarks.prefixes [--tasks 8] [--batch-size 512]

A random player plays ALFWorld in groups of 8, in the tokens of a model. The same play is recorded
with two templates: the package's own, which shows the last five steps, and one that shows all steps
so far, so that prompts grow. A third log has the first step of each trajectory of the former only:
the single-turn prompts of groups. Each is planned as the trainer does, with and without shared
prefixes.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from transformers import AutoTokenizer, Qwen2Config, Qwen2ForCausalLM
from transformers.utils.logging import disable_progress_bar

from examples.warm_up import train_tokenizer
from graphcredit.collector.policies import language
from graphcredit.store import open_store, read_steps
from graphcredit.trainer.batching.plan import make_plan
from graphcredit.trainer.data.prefix_order import PrefixOrder, sort_by_prefix
from tests.trainer.indexes import index_of

Step: TypeAlias = tuple[int, np.ndarray, np.ndarray]
"""Number in the trajectory, prompt and response."""

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
    options = parser.parse_args()
    tasks, batch_size = options.tasks, options.batch_size
    disable_progress_bar()
    print("tokens: through the model without and with shared prefixes, and distinct in a step")
    columns = ("steps", "logged", "without", "shared", "distinct", "ratio")
    print(f"{'log':<14}" + "".join(f"{name:>10}" for name in columns))
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        _make_model(Path(folder), model, tasks)
        recent = _play(Path(folder) / "recent", model, tasks, "alfworld")
        growing = _play(Path(folder) / "growing", model, tasks, str(_growing(Path(folder))))
        single = [ids for number, *ids in recent if number == 0]
        _compare("last 5 steps", [ids for _, *ids in recent], batch_size)
        _compare("all steps", [ids for _, *ids in growing], batch_size)
        _compare("single turn", single, batch_size)


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
    template = Path(language.__path__[0]) / "templates" / "alfworld.toml"
    path = folder / "growing.toml"
    text = template.read_text(encoding="utf-8")
    path.write_text(text.replace("history_length = 5", "history_length = 1000"), encoding="utf-8")
    return path


def _play(store: Path, model: Path, tasks: int, template: str) -> list[Step]:
    """Return the number of each step in its trajectory, its prompt and its response."""
    _collect(store, tasks, "--policy", f"tutor:{model}", "--template", template)
    columns = ("step_index", "prompt_ids", "response_ids")
    steps: list[Step] = []
    for table in read_steps(open_store(store), columns=columns):
        for number, *ids in zip(*(table[name].to_pylist() for name in columns), strict=True):
            prompt, response = (np.array(each, np.int32) for each in ids)
            steps.append((number, prompt, response))
    return steps


def _collect(store: Path, tasks: int, *options: str) -> None:
    command = [sys.executable, "-m", "graphcredit.cli.main", "collect", str(store)]
    play = ["--env", "alfworld", "--tasks", str(tasks), "--quiet"]
    subprocess.run([*command, *play, *options], check=True, stdout=subprocess.DEVNULL)


def _compare(name: str, samples: Sequence[Sequence[np.ndarray]], batch_size: int) -> None:
    order, shared = sort_by_prefix([np.concatenate(ids) for ids in samples])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    length = np.array([len(prompt) + len(response) for prompt, response in samples])
    prefixes = PrefixOrder(rank=rank, shared=shared, length=length)
    whole = [prompt.tobytes() + b"|" + response.tobytes() for prompt, response in samples]
    index = index_of(
        [len(response) for _, response in samples],
        prompts=[len(prompt) for prompt, _ in samples],
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
    without, with_shared = (
        sum(plan.statistics(n, 1).num_tokens for n in range(len(plan.updates))) for plan in plans
    )
    distinct = sum(int(prefixes.runs(steps).new.sum()) for steps in plans[0].updates)
    numbers = (len(samples), int(length.sum()), without, with_shared, distinct)
    line = "".join(f"{number:>10,}" for number in numbers)
    print(f"{name:<14}{line}{without / with_shared:>10.2f}", flush=True)


if __name__ == "__main__":
    main()
