"""Times sampling with transformers, with and without the KV cache of earlier prompts.

    python -m benchmarks.prompts --games 16 --repeats 2

A warm policy of the learning experiment plays games in groups of 8, once. The benchmark then
repeats its batches of requests with two engines. One computes the distinct prompts of each batch;
the other also keeps the KV cache of earlier prompts.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks.machine import describe
from experiments.textworld.settings import SETTINGS
from experiments.textworld.warm import KEPT_WARM
from graphcredit.collector.collection import collect
from graphcredit.collector.environments.base import Task
from graphcredit.collector.options import CollectOptions
from graphcredit.collector.policies.engines import registry
from graphcredit.collector.policies.engines.base import Request, Response, Sampling
from graphcredit.collector.policies.engines.kv_cache import KEPT_BYTES
from graphcredit.collector.policies.engines.transformers import TransformersEngine
from graphcredit.store import create_store

SETTING = SETTINGS["hard"]
MODEL = str(KEPT_WARM / "hard-0")

Batch = tuple[list[Request], Sampling]


class _Recording(TransformersEngine):
    """Engine that records its requests."""

    def __init__(self, batches: list[Batch]) -> None:
        """Record the requests in a list of batches."""
        super().__init__()
        self._batches = batches

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Response]:
        self._batches.append((list(requests), sampling))
        return super().generate(requests, sampling)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=16, help="number of hard games")
    parser.add_argument("--repeats", type=int, default=2, help="show the best of so many runs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    batches = _play(options.games)
    prompts = [request.prompt_ids for requests, _ in batches for request in requests]
    print(f"{describe()}, {len(prompts)} steps in {len(batches)} batches, one thread")
    length = sum(map(len, prompts)) / len(prompts)
    print(f"{len(set(prompts))} distinct prompts, {length:.0f} tokens in the mean")
    print(f"{'kept':<12}{'cpu s':>9}{'steps/s':>9}{'ratio':>7}")
    base = 0.0
    for name, kept_bytes in (("nothing", 0), ("1 GiB", KEPT_BYTES)):
        seconds = min(_ask(batches, kept_bytes) for _ in range(options.repeats))
        base = base or seconds
        print(f"{name:<12}{seconds:>9.1f}{len(prompts) / seconds:>9.0f}{base / seconds:>7.2f}")


def _play(num_games: int) -> list[Batch]:
    batches: list[Batch] = []
    registry.ENGINES["hf"] = replace(registry.ENGINES["hf"], open=lambda: _Recording(batches))
    with tempfile.TemporaryDirectory() as folder:
        collect(
            create_store(Path(folder) / "store"),
            [
                Task(environment="textworld", spec=spec)
                for spec in SETTING.specs(SETTING.games[:num_games]).split(",")
            ],
            CollectOptions(
                policy=f"hf:{MODEL}",
                template="tiny",
                max_new_tokens=14,
                max_steps=SETTING.max_steps,
                workers=0,
            ),
        )
    return batches


def _ask(batches: Sequence[Batch], kept_bytes: int) -> float:
    engine = TransformersEngine(kept_bytes)
    engine.load(MODEL)
    started = time.process_time()
    for requests, sampling in batches:
        engine.generate(requests, sampling)
    return time.process_time() - started


if __name__ == "__main__":
    main()
