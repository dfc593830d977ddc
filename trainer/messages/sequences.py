"""The token sequences of a trajectory: one for all turns, as long as the template only appends."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphcredit.trainer.messages.conversation import Conversation, UnusableError
from graphcredit.trainer.messages.template import Answered


class Span(NamedTuple):
    """The answer of a step in a sequence."""

    step: int
    """Its number in the trajectory."""
    start: int
    """Where its tokens begin; the ones before are its prompt."""
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenSequence:
    """Tokens of one or several turns, one after the other."""

    ids: NDArray[np.int32]
    spans: tuple[Span, ...]
    """The answers in it, in order."""

    def expanded(self, token: int, num_vectors: Sequence[int]) -> "TokenSequence":
        """Return it with a placeholder `token` for each vector of an image, not for each image.

        One in an answer is text.
        """
        is_place = self.ids == token
        for _, start, end in self.spans:
            is_place[start:end] = False
        repeats = np.ones(len(self.ids), np.int64)
        repeats[is_place] = num_vectors
        place = np.concatenate([[0], np.cumsum(repeats)]).tolist()
        spans = (Span(step, place[start], place[end]) for step, start, end in self.spans)
        return TokenSequence(ids=np.repeat(self.ids, repeats), spans=tuple(spans))


@dataclass(slots=True)
class _Open:
    """A text that later turns may append to."""

    parts: list[str] = field(default_factory=list[str])
    """Prompt and answer in turn."""
    steps: list[int] = field(default_factory=list[int])
    text: str = ""

    def takes(self, answered: Answered) -> bool:
        """Append a turn, if its text begins with all that is here; return whether it does."""
        if not answered.text.startswith(self.text) or answered.start < len(self.text):
            return False
        new = answered.text[len(self.text) : answered.start]
        self.parts += [new, answered.text[answered.start :]]
        self.text = answered.text
        return True


def sequences_of(
    conversation: Conversation,
    answered: Callable[[Sequence[dict[str, Any]]], Answered],
    encode: Callable[[Sequence[str]], list[list[int]]],
) -> tuple[list[TokenSequence], list[str]]:
    """Return the sequences of a trajectory, each step in one of them, if it can be tokenised.

    A sequence goes on as long as the text of a turn begins with the whole text of the turn before.
    A template that rewrites the past, such as one that drops earlier reasoning, begins a new one.

    Returns:
        The sequences; and of each turn that is in none, why.
    """
    opened: list[_Open] = []
    messages: list[dict[str, Any]] = []
    faults: list[str] = []
    for step, turn in enumerate(conversation.turns):
        messages += [*turn.seen, turn.answer]
        try:
            text = answered(messages)
        except UnusableError as error:
            faults.append(str(error))
            continue
        if not opened or not opened[-1].takes(text):
            opened.append(_Open())
            opened[-1].takes(text)
        opened[-1].steps.append(step)
    return [_encoded(each, encode) for each in opened], faults


def _encoded(opened: _Open, encode: Callable[[Sequence[str]], list[list[int]]]) -> TokenSequence:
    each = encode(opened.parts)
    ends = np.cumsum([len(ids) for ids in each]).tolist()
    starts, ends = ends[0::2], ends[1::2]
    return TokenSequence(
        ids=np.array([token for ids in each for token in ids], np.int32),
        spans=tuple(map(Span, opened.steps, starts, ends)),
    )
