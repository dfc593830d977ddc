"""Behaviour cloning: a model learns to answer a prompt as the log does."""

import time
from itertools import islice
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from graphcredit.store.layout import open_store
from graphcredit.store.options import AtLeastOne, Count, Options, PathOption, Positive
from graphcredit.store.progress import OnProgress, silent
from graphcredit.trainer.batching.bin_packing import pack
from graphcredit.trainer.cloning.examples import Pairs, held_out, read_pairs, shuffled
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.data.ragged import Ints
from graphcredit.trainer.engine.distributed import destroy_process_group
from graphcredit.trainer.engine.engine import TrainingEngine
from graphcredit.trainer.engine.opening import open_engine
from graphcredit.trainer.engine.optimizer_step import learning_rate

_MICRO_TOKENS = 2048
"""Tokens of a micro-batch; the activations of a small model then fit the CPU's caches."""


class CloneConfig(Options):
    """Options of behaviour cloning."""

    owner: ClassVar[str] = "clone"

    store: PathOption
    """The store."""
    run: str
    """The run whose steps have token ids."""
    model: PathOption
    """The model to start from."""
    out: PathOption
    """The directory that becomes the new model, tokenizer included."""
    steps: AtLeastOne = 400
    """Optimizer steps."""
    batch_size: AtLeastOne = 128
    """Steps of the log in an optimizer step."""
    learning_rate: Positive = 2e-3
    """Peak learning rate of AdamW."""
    warmup: Count = 30
    """Optimizer steps until the learning rate reaches its peak."""
    held_out: Annotated[float, Field(gt=0, le=0.5)] = 0.05
    """Share of the prompts kept for validation."""
    seed: Count = 0
    """Determines the order of the steps, and which prompts are held out."""


def clone(config: CloneConfig, *, on_progress: OnProgress = silent) -> dict[str, Any]:
    """Train a model to act as in a log. Only response tokens count, all with the same weight.

    The model is written whole or not at all; a killed cloning starts over.

    Returns:
        Counts of the data, and losses. A loss is the mean of -log p over response tokens: of the
        last tenth of the updates, and of the steps with held-out prompts.

    Raises:
        InputError: The steps have no token ids, or they are not the model's.
        TrainingError: A gradient was not finite.
    """
    pairs = read_pairs(open_store(config.store), config.run)
    learnt, kept = held_out(pairs, config.held_out, config.seed)
    training = _train_config(config)
    engine = open_engine(str(config.model), training)
    losses: list[float] = []
    num_tokens = 0
    started = time.perf_counter()
    for number, (numbers, counts) in enumerate(
        islice(shuffled(learnt, config.batch_size, config.seed), config.steps)
    ):
        rate = learning_rate(training, number, config.steps)
        losses.append(_update(engine, learnt, numbers, counts, rate))
        num_tokens += int(learnt.length[numbers].sum())
        on_progress("learn", number + 1, config.steps, f"loss {losses[-1]:.3f}")
    tokens_per_second = num_tokens / (time.perf_counter() - started)
    figures = {
        "num_steps": int(pairs.count.sum()),
        "num_pairs": len(pairs.count),
        "longest_response": int(pairs.response_length.max()),
        "num_updates": config.steps,
        "loss": float(np.mean(losses[-max(1, config.steps // 10) :])),
        "held_out_loss": mean_loss(engine, kept),
        "tokens_per_second": tokens_per_second,
    }
    engine.save_pretrained(config.out)
    destroy_process_group()
    return figures


def mean_loss(engine: TrainingEngine, pairs: Pairs) -> float:
    """Return the mean of -log p over the response tokens of all steps behind the pairs."""
    weight = pairs.count / (pairs.count * pairs.response_length).sum()
    total = 0.0
    with engine.frozen():
        for numbers in pack(pairs.length, _capacity(pairs.length)):
            batch = pairs.packed(numbers, weight[numbers])
            logprob = engine.score(batch).logprob
            total -= float((engine.put(batch.weight) * logprob).sum())
    return total


def _update(
    engine: TrainingEngine, pairs: Pairs, numbers: Ints, counts: Ints, rate: float
) -> float:
    """Take one optimizer step on some pairs, each counting as often as it was drawn."""
    lengths = pairs.length[numbers]
    weight = counts / (counts * pairs.response_length[numbers]).sum()
    total = 0.0
    for items in pack(lengths, _capacity(lengths)):
        batch = pairs.packed(numbers[items], weight[items])
        loss = -(engine.put(batch.weight) * engine.score(batch).logprob).sum()
        engine.backward(loss)
        total += loss.item()
    engine.update(rate)
    return total


def _capacity(lengths: Ints) -> int:
    return max(_MICRO_TOKENS, int(lengths.max()))


def _train_config(config: CloneConfig) -> TrainConfig:
    return TrainConfig(
        store=config.store,
        out=config.out,
        model=str(config.model),
        learning_rate=config.learning_rate,
        warmup=config.warmup,
        schedule="cosine",
        seed=config.seed,
    )
