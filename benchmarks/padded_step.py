"""An optimizer step that is usual with Hugging Face models, for `benchmarks.train` to compare with.

The samples of a batch are padded to the longest one, all logits are computed, and log-probabilities
are taken from them.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import torch
from transformers import AutoModelForCausalLM

Sample: TypeAlias = tuple[list[int], list[int]]
"""Prompt and response."""


def padded_step(
    directory: Path, samples: Sequence[Sample], *, max_tokens: int, device: str, dtype: str
) -> Callable[[], None]:
    """Load the model, and return a function that takes the step.

    Args:
        directory: Of the model.
        samples: Of the step.
        max_tokens: Most tokens of a batch, with padding.
        device: cpu or cuda.
        dtype: Type of the arithmetic; weights are float32.
    """
    models: Any = AutoModelForCausalLM
    model = models.from_pretrained(directory, dtype=torch.float32).to(device)
    is_fused = device == "cuda"
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=is_fused, foreach=False)

    def step() -> None:
        for batch in batches(samples, max_tokens):
            _backward(model, batch, dtype)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def batches(samples: Sequence[Sample], max_tokens: int) -> Iterator[list[Sample]]:
    """Yield the samples of each batch whose rows, padded to the longest, have so many tokens."""
    batch: list[Sample] = []
    longest = 0
    for prompt, response in samples:
        longest = max(longest, len(prompt) + len(response))
        if batch and longest * (len(batch) + 1) > max_tokens:
            yield batch
            batch, longest = [], len(prompt) + len(response)
        batch.append((prompt, response))
    yield batch


def _backward(model: Any, samples: list[Sample], dtype: str) -> None:
    longest = max(len(prompt) + len(response) for prompt, response in samples)
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
