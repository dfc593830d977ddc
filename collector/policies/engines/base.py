"""What samples tokens: the seam between a language policy and the library that runs its model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Dtype = Literal["auto", "float32", "bfloat16"]
"""What a model computes in; auto is bfloat16 on a GPU, and float32 elsewhere."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One answer to sample."""

    prompt_ids: tuple[int, ...]
    """What the model is given."""
    seed: int
    """Decides the answer, whatever else is sampled beside it; 0 to 2⁶³ - 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How answers are sampled: from the whole distribution, never a part of it."""

    temperature: float
    """Divides the logits; 0 takes the most probable token."""
    max_new_tokens: int
    """Where an answer is cut off."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """One sampled answer."""

    token_ids: list[int]
    """The tokens, the one that ended the answer included."""
    logprobs: list[float]
    """Log-probability of each at the temperature; 0 at temperature 0, where nothing else could
    come."""


class SamplingEngine(Protocol):
    """A model in memory."""

    @property
    def tokenizer(self) -> Any:
        """The model's tokenizer, of transformers."""
        ...

    @property
    def end_ids(self) -> frozenset[int]:
        """Tokens that end an answer."""
        ...

    @property
    def room(self) -> int | None:
        """Tokens that a prompt and its answer may have together; None where nothing says so."""
        ...

    def load(self, path: str, dtype: Dtype = "auto") -> None:
        """Take the weights and the tokenizer of another directory.

        Args:
            path: The directory.
            dtype: What to compute in.

        Raises:
            InputError: It has no model that can be loaded.
        """
        ...

    def forget(self) -> None:
        """Drop what is kept of earlier requests, so that later ones do not depend on them."""
        ...

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Response]:
        """Sample an answer to each request, whose prompt leaves room for a token or more."""
        ...


def arithmetic(dtype: Dtype) -> str:
    """Return what a model computes in on this machine: float32 or bfloat16."""
    if dtype != "auto":
        return dtype
    import torch

    return "bfloat16" if torch.cuda.is_available() else "float32"


def max_answer(request: Request, sampling: Sampling, room: int | None) -> int:
    """Return where an answer is cut off: after `max_new_tokens`, or where the room ends."""
    asked = sampling.max_new_tokens
    return asked if room is None else min(asked, room - len(request.prompt_ids))
