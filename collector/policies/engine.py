"""What samples tokens: the seam between a language policy and the library that runs its model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from graphcredit.store.errors import InputError


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


class Engine(Protocol):
    """A model in memory."""

    @property
    def tokenizer(self) -> Any:
        """The model's tokenizer, of transformers."""
        ...

    @property
    def end_ids(self) -> frozenset[int]:
        """Tokens that end an answer."""
        ...

    def load(self, path: str) -> None:
        """Take the weights and the tokenizer of another directory.

        Raises:
            InputError: It has no model that can be loaded.
        """
        ...

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Response]:
        """Sample an answer to each request.

        Raises:
            InputError: A prompt leaves the model no room for an answer.
        """
        ...


def check_room(requests: Sequence[Request], sampling: Sampling, room: int | None) -> None:
    """Raise InputError if a prompt and its answer are more tokens than a model has room for."""
    longest = max(len(request.prompt_ids) for request in requests)
    if room is not None and longest + sampling.max_new_tokens > room:
        raise InputError(
            f"a prompt and its answer must fit in the {room} tokens of the model: a prompt has "
            f"{longest}, and {sampling.max_new_tokens} new tokens were asked for. Ask for fewer, "
            "or shorten the template's history"
        )
