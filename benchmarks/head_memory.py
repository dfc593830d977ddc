"""Counts the memory that the head takes while it scores a chunk of tokens and goes backward.

    python -m benchmarks.head_memory

One copy is the chunk's float32 logits: tokens x vocabulary x 4 bytes. Two ways are compared: by
blocks of the vocabulary, as the trainer does, and from whole rows of logits that are made again in
the backward pass. The result, the hidden states, and the gradients of hidden states and head are
there in both, and do not count. Every allocation of torch is counted, by its profiler.
"""

import argparse
import time
from typing import Any

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint

from benchmarks.machine import describe
from graphcredit.trainer.model.head import head_logprobs

_WIDTH = 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--vocabulary", type=int, default=151_936)
    options = parser.parse_args()
    print(f"{describe()}, torch {torch.__version__}, {torch.get_num_threads()} threads")
    print(f"{options.tokens} tokens, a vocabulary of {options.vocabulary:,}")
    print(f"{'how':<10}{'type':<10}{'copies':>8}{'GiB':>8}{'seconds':>9}")
    for how in ("plain", "blocks"):
        for dtype in ("float32", "bfloat16"):
            start = time.perf_counter()
            num_copies = copies(how, options.tokens, options.vocabulary, dtype)
            seconds = time.perf_counter() - start
            gib = num_copies * 4 * options.tokens * options.vocabulary / 2**30
            print(f"{how:<10}{dtype:<10}{num_copies:>8.2f}{gib:>8.2f}{seconds:>9.1f}")


def copies(how: str, num_tokens: int, vocabulary: int, dtype: str) -> float:
    """Return the most copies of the chunk's float32 logits that exist at once.

    Args:
        how: `plain` or `blocks`.
        num_tokens: Tokens of the chunk.
        vocabulary: Tokens of the vocabulary.
        dtype: Type of the head.
    """
    torch.manual_seed(0)
    kind = getattr(torch, dtype)
    hidden = torch.randn(num_tokens, _WIDTH, dtype=kind).requires_grad_()
    weight = torch.randn(vocabulary, _WIDTH, dtype=kind).requires_grad_()
    token_ids = torch.randint(vocabulary, (num_tokens,))
    temperature = torch.ones(num_tokens)
    score = _plain if how == "plain" else _by_blocks
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        logprob, _ = score(hidden, weight, token_ids, temperature)
        logprob.sum().backward()
    kept = sum(x.numel() * x.element_size() for x in (hidden, weight))
    return (_peak(profiler) - kept) / (4 * num_tokens * vocabulary)


def _peak(profiler: Any) -> int:
    """Return the most bytes that were allocated at once since the profiler started."""
    now = peak = 0
    for event in profiler.profiler.kineto_results.events():
        if event.name() == "[memory]":
            now += event.nbytes()
            peak = max(peak, now)
    return peak


def _by_blocks(
    hidden: Tensor, weight: Tensor, token_ids: Tensor, temperature: Tensor
) -> tuple[Tensor, Tensor]:
    return head_logprobs(weight, hidden, token_ids, temperature, want_entropy=False)


def _plain(*inputs: Tensor) -> tuple[Tensor, Tensor]:
    scored: Any = checkpoint(_whole_rows, *inputs, use_reentrant=False)
    return scored


def _whole_rows(
    hidden: Tensor, weight: Tensor, token_ids: Tensor, temperature: Tensor
) -> tuple[Tensor, Tensor]:
    logits = (hidden @ weight.T).float() / temperature[:, None]
    log_total = logits.logsumexp(dim=-1)
    logprob = logits.gather(-1, token_ids[:, None])[:, 0] - log_total
    with torch.no_grad():
        entropy = log_total - (logits.softmax(dim=-1) * logits).sum(dim=-1)
    return logprob, entropy


if __name__ == "__main__":
    main()
