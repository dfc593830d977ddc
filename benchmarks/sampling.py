"""How fast a language model samples with transformers, on the GPU if there is one.

    python -m benchmarks.sampling MODEL

A batch of prompts that begin alike is read, and continued by the same number of tokens. The cache
that grows is what models with sliding windows have; the fixed one is that of all others, on a GPU
with a CUDA graph.
"""

import argparse
import random
import time

import torch

from benchmarks.machine import describe
from graphcredit.collector.policies.engines.base import Request, Sampling
from graphcredit.collector.policies.engines.transformers import TransformersEngine


def main() -> None:
    """Print a line for each cache."""
    options = _options()
    engine = TransformersEngine()
    engine.load(options.model)
    engine.end_ids = frozenset()
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    print(f"{device}; {describe()}; torch {torch.__version__}")
    print(f"{options.rows} rows, prompts of {options.prompt}, {options.shared} of them shared")
    for name, is_fixed in (("growing", False), ("fixed", True)):
        engine._decoder._keeps_all = is_fixed  # pyright: ignore[reportPrivateUsage]
        one = _seconds(engine, options, 1)
        all_tokens = _seconds(engine, options, options.tokens)
        each = (all_tokens - one) / (options.tokens - 1)
        print(
            f"{name:8} reads and first token {1e3 * one:.0f} ms, then {1e3 * each:.1f} ms a token: "
            f"{options.rows / each:,.0f} tokens/s; {options.tokens} tokens each: "
            f"{options.rows * options.tokens / all_tokens:,.0f} tokens/s"
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--prompt", type=int, default=200, help="tokens of a prompt")
    parser.add_argument("--shared", type=int, default=60, help="tokens that all begin with")
    parser.add_argument("--tokens", type=int, default=12, help="tokens of an answer")
    parser.add_argument("--repeats", type=int, default=3)
    return parser.parse_args()


def _seconds(engine: TransformersEngine, options: argparse.Namespace, tokens: int) -> float:
    """Return the best time of some batches, after one that is not counted."""
    chance = random.Random(0)
    begin = [chance.randrange(5, 200) for _ in range(options.shared)]
    rest = options.prompt - options.shared
    requests = [
        Request(prompt_ids=(*begin, *(chance.randrange(5, 200) for _ in range(rest))), seed=row)
        for row in range(options.rows)
    ]
    sampling = Sampling(temperature=1.0, max_new_tokens=tokens)
    engine.generate(requests, sampling)
    times: list[float] = []
    for _ in range(options.repeats):
        started = time.perf_counter()
        engine.generate(requests, sampling)
        times.append(time.perf_counter() - started)
    return min(times)


if __name__ == "__main__":
    main()
