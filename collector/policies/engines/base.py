"""The interface of a sampling engine, between a language policy and the library of its model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Dtype = Literal["auto", "float32", "bfloat16"]
"""Number type of a model's arithmetic; auto is bfloat16 on a GPU, and float32 elsewhere."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A request for one sampled answer."""

    prompt_ids: tuple[int, ...]
    seed: int
    """Determines the answer, independently of the rest of the batch; 0 to 2⁶³ - 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """Sampling parameters. Answers are sampled from the full distribution: no top-k, no top-p."""

    temperature: float
    """Divides the logits; 0 takes the most probable token."""
    max_new_tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """One sampled answer."""

    token_ids: list[int]
    """Token ids, the end token included."""
    logprobs: list[float]
    """Log-probability of each token at the temperature; 0 at temperature 0, where it is certain."""


class SamplingEngine(Protocol):
    """A model in memory."""

    @property
    def tokenizer(self) -> Any:
        """The model's tokenizer, from transformers."""
        ...

    @property
    def end_ids(self) -> frozenset[int]:
        """Tokens that end an answer."""
        ...

    @property
    def room(self) -> int | None:
        """Most tokens of a prompt and its answer together; None if there is no known limit."""
        ...

    def load(self, path: str, dtype: Dtype = "auto") -> None:
        """Load the weights and the tokenizer of a directory, in place of the current ones.

        Raises:
            InputError: The directory has no model that can be loaded.
        """
        ...

    def forget(self) -> None:
        """Empty the caches of earlier requests, so that later answers do not depend on them."""
        ...

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Response]:
        """Sample an answer to each request. Each prompt must leave room for a token."""
        ...


def arithmetic(dtype: Dtype) -> str:
    """Return the number type on this machine: float32 or bfloat16."""
    if dtype != "auto":
        return dtype
    import torch

    return "bfloat16" if torch.cuda.is_available() else "float32"


def max_answer(request: Request, sampling: Sampling, room: int | None) -> int:
    """Return the most tokens of an answer: `max_new_tokens`, or the room that the prompt leaves."""
    asked = sampling.max_new_tokens
    return asked if room is None else min(asked, room - len(request.prompt_ids))
