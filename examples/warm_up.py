"""A policy to start a loop from, where no pretrained model can be downloaded: a tiny one.

    python examples/warm_up.py warm --env textworld --games custom-r5o5q5b1n1 --tasks 12
    graphcredit loop examples/textworld-loop.toml

docs/how-to/language-model.md warms up a pretrained model. A model from nothing learns to speak,
from winners and losers: here every step has the same credit. DIR gets `letters` and `init`, models
that know no words and those of the environment, `store` with the random play, and `policy`, the
training. The same command goes on where it was interrupted.
"""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen2Tokenizer

from graphcredit.collector.collection import collect
from graphcredit.collector.environments.registry import environment_kind
from graphcredit.collector.options import CollectOptions
from graphcredit.store import Store, create_store, read_steps
from graphcredit.store.files.tables import write_table
from graphcredit.store.parquet.shards import read_table
from graphcredit.store.schema import CREDIT_KEY_COLUMNS
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.model.export import distinct, save_model
from graphcredit.trainer.training import train

NUM_LETTERS = 257
"""Tokens of a tokenizer without words: one per byte, and the end token."""

BATCH = 128
"""Steps of the log in an optimizer step."""

_SHAPE: dict[str, Any] = {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 3,
    # A head size of 32, the smallest that vLLM's attention supports on a CPU.
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1024,
    # When tied weights are loaded again, vLLM on a CPU keeps the old head.
    "tie_word_embeddings": False,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class WarmUp:
    """How a policy is warmed up."""

    directory: Path
    env: str
    games: str | None = None
    tasks: int = 12
    episodes: int = 100
    """Random plays of each task."""
    max_steps: int = 20
    template: str = "tiny"
    vocabulary: int = 1024
    """Tokens of the tokenizer, at most."""
    updates: int = 400
    """Optimizer steps, about: the last epoch is whole."""
    seed: int = 0
    workers: int = 2


def warm_up(plan: WarmUp) -> Path:
    """Make a policy that acts as a random player does, unless it is there; return its folder."""
    store = create_store(plan.directory / "store")
    letters, init = plan.directory / "letters", plan.directory / "init"
    make_model(letters, (), num_tokens=NUM_LETTERS, seed=plan.seed)
    play(plan, store, "text", letters, min(plan.episodes, 10))
    make_model(init, recorded_texts(store, letters), num_tokens=plan.vocabulary, seed=plan.seed)
    play(plan, store, "random", init, plan.episodes)
    num_steps = credit_alike(store, "random")
    config = TrainConfig(
        store=(store.root,),
        run="random",
        model=str(init),
        out=plan.directory / "policy",
        advantage="alike",
        objective="sft",
        objective_options={"weight": "equal"},
        batch_size=BATCH,
        epochs=max(1, round(plan.updates * BATCH / num_steps)),
        max_tokens=16_384,
        learning_rate=2e-3,
        warmup=30,
        schedule="cosine",
        seed=plan.seed,
    )
    train(config)
    return config.out / "model"


def play(plan: WarmUp, store: Store, run: str, model: Path, num_episodes: int) -> None:
    """Play every task at random, recorded in the tokens of a model."""
    kind = environment_kind(plan.env)
    tasks = kind.list_tasks(plan.games, num_tasks=plan.tasks, seed=plan.seed)
    options = CollectOptions(
        policy=f"tutor:{model}",
        template=plan.template,
        group_size=num_episodes,
        max_steps=plan.max_steps,
        seed=plan.seed,
        workers=plan.workers,
        run=run,
    )
    report = collect(store, tasks, options)
    if report.failures:
        raise SystemExit(f"every episode must end, but {'; '.join(report.failures)}")


def credit_alike(store: Store, run: str) -> int:
    """Give every step of a run the credit 1, and return how many there are."""
    number = 0
    for shard in store.shards(run):
        keys = read_table(shard.path, CREDIT_KEY_COLUMNS)
        shard.credit_path.parent.mkdir(parents=True, exist_ok=True)
        ones = pa.array(np.ones(keys.num_rows, np.float32))
        write_table(keys.append_column("alike_advantage", ones), shard.credit_path)
        number += keys.num_rows
    return number


def make_model(directory: Path, texts: Iterable[str], *, num_tokens: int, seed: int) -> None:
    """Write a model with random weights, unless it is there, and a tokenizer of some texts.

    The model embeds the tokenizer's tokens alone, so it samples no unknown id.
    """
    if directory.exists():
        return
    with TemporaryDirectory() as folder:
        words = train_tokenizer(Path(folder), texts, num_tokens=num_tokens)
        config = Qwen2Config(
            vocab_size=len(words),
            bos_token_id=None,
            eos_token_id=words.eos_token_id,
            pad_token_id=words.pad_token_id,
            **_SHAPE,
        )
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model: Any = Qwen2ForCausalLM(config)
        weights = distinct(model, model.state_dict(keep_vars=True))
        save_model(directory, model, weights, Path(folder))


def train_tokenizer(directory: Path, texts: Iterable[str], *, num_tokens: int) -> Any:
    """Save a tokenizer of some texts, and return it.

    It is byte-level BPE with Qwen2's rules: transformers applies these to a Qwen2 model whatever
    its files say.
    """
    blank: Any = Qwen2Tokenizer()
    words = blank.train_new_from_iterator(texts, vocab_size=num_tokens, show_progress=False)
    words.save_pretrained(str(directory))
    return words


def recorded_texts(store: Store, tokenizer: Path) -> Iterator[str]:
    """Yield each different prompt and answer of the run `text`."""
    words = Qwen2Tokenizer.from_pretrained(str(tokenizer))
    columns = ("prompt_ids", "response_ids")
    tables = read_steps(store, columns=columns, run_id="text")
    ids = (tuple(ids) for table in tables for name in columns for ids in table[name].to_pylist())
    for each in dict.fromkeys(ids):
        yield str(words.decode(each, skip_special_tokens=True))


def main() -> None:
    """Warm up a policy."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--env", required=True)
    parser.add_argument("--games")
    parser.add_argument("--template", default="tiny")
    for name, default in (("tasks", 12), ("episodes", 100), ("max-steps", 20), ("updates", 400)):
        parser.add_argument(f"--{name}", type=int, default=default)
    print(f"The policy is in {warm_up(WarmUp(**vars(parser.parse_args())))}")


if __name__ == "__main__":
    main()
