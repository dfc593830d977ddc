"""A world small enough to be learnt from in a test: corridors, and a model that talks at random."""

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import PreTrainedTokenizerFast

from graphcredit.collector.environments.base import Environment, Task
from graphcredit.collector.environments.registry import ENVIRONMENTS, EnvironmentKind
from graphcredit.loop.config import LoopConfig, loop_config
from graphcredit.loop.run import Line, run_loop
from tests.collector.corridor import Corridor
from tests.trainer.models import tiny_model

WORDS = ("<pad>", "<eos>", "<unk>", "east", "west", "room", "0", "1", "2", "3")


def register_corridors() -> None:
    """Make corridors an environment like any other, in this process."""
    ENVIRONMENTS["corridor"] = EnvironmentKind(list_tasks=_list_tasks, open=_open)


def _list_tasks(
    games: str | None, *, num_tasks: int, seed: int, games_dir: Path | None = None
) -> list[Task]:
    """Return corridors of `games` rooms, 2 and 3 in turn by default, named apart by seeds."""
    del games_dir
    rooms = (games or "2,3").split(",")
    specs = [f"r{rooms[n % len(rooms)]}-s{seed + n}" for n in range(num_tasks)]
    return [Task(environment="corridor", spec=spec) for spec in specs]


def _open(spec: str, cache_dir: Path, with_oracle: bool) -> Environment:
    del cache_dir, with_oracle
    return Corridor(num_rooms=int(spec[1]))


def save_talker(directory: Path, **settings: Any) -> Path:
    """Write a tiny model whose tokens are words of corridors, and a template for it.

    It is no Qwen2, since transformers 5 opens every tokenizer of that as one of its own.

    Args:
        directory: Where they are written.
        settings: Configuration fields that differ from the tiny shape.
    """
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )
    ids = {"bos_token_id": None, "eos_token_id": 1, "pad_token_id": 0}
    model = tiny_model("llama", vocab_size=len(WORDS), initializer_range=0.05, **ids, **settings)
    model.save_pretrained(directory)
    fast.save_pretrained(directory)
    template = directory / "corridor.toml"
    template.write_text('answer = "plain"\nuser = "{observation} {actions}"\n', encoding="utf-8")
    return directory


def corridor_loop(root: Path, out: str, **changes: Any) -> LoopConfig:
    """Return two iterations over two corridors, evaluated before, between and after.

    Args:
        root: Where `save_talker` has put a model, in `start`.
        out: Name of the loop's directory beside it.
        changes: Options that differ; those of a table as a mapping.
    """
    values: dict[str, Any] = {
        "out": str(root / out),
        "model": str(root / "start"),
        "iterations": 2,
        "collect": {
            "env": "corridor",
            "tasks": 2,
            "group_size": 4,
            "max_steps": 6,
            "max_new_tokens": 1,
            "template": str(root / "start" / "corridor.toml"),
            "concurrency": 1,
        },
        "credit": {"estimators": ["graphgpo", "grpo"]},
        "train": {
            "learning_rate": 0.01,
            "kl_coefficient": 0.02,
            "batch_size": 8,
            "checkpoint_every": 1,
            "device": "cpu",
        },
        "evaluate": {"every": 1, "tasks": 1, "samples": 2},
    }
    for name, change in changes.items():
        old = values.get(name)
        merged = isinstance(old, dict) and isinstance(change, Mapping)
        values[name] = {**old, **change} if merged else change
    return loop_config(values)


def run(config: LoopConfig) -> list[Line]:
    """Run a loop in this process, on one thread."""
    torch.set_num_threads(1)
    register_corridors()
    return list(run_loop(config))


def run_and_kill(config: LoopConfig, what: str, count: int) -> None:
    """Run a loop and kill this process where a stage tells of its progress the count-th time."""
    told = 0

    def on_progress(found: str, done: float = 0, total: int = 0, note: str = "") -> None:
        nonlocal told
        told += found.startswith(what)
        if told == count:
            os.kill(os.getpid(), signal.SIGKILL)

    torch.set_num_threads(1)
    register_corridors()
    for _ in run_loop(config, on_progress=on_progress):
        pass
