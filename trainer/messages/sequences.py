"""The token sequences of a trajectory: one for all turns, as long as the template only appends."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphcredit.trainer.messages.conversation import Conversation, UnusableError
from graphcredit.trainer.messages.template import AnsweredChat, ChatTemplate


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
    num_without_reasoning: int = 0
    """Answers whose reasoning the template leaves out."""

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
        return replace(self, ids=np.repeat(self.ids, repeats), spans=tuple(spans))


@dataclass(slots=True)
class _Open:
    """A text that later turns may append to."""

    parts: list[str] = field(default_factory=list[str])
    """Prompt and answer in turn."""
    steps: list[int] = field(default_factory=list[int])
    ends: list[int] = field(default_factory=list[int])
    """Characters to the end of each part."""
    num_without_reasoning: int = 0

    def takes(self, step: int, made: AnsweredChat, text: str) -> bool:
        """Append a turn, if its text begins with what is here; return whether it does.

        Args:
            step: Number of the turn.
            made: The turn.
            text: What is here, as far as `made` repeats it.
        """
        if not made.text.startswith(text) or made.start < len(text):
            return False
        for part in (made.text[len(text) : made.start], made.text[made.start :]):
            self.parts.append(part)
            self.ends.append(len(part) + (self.ends[-1] if self.ends else 0))
        self.steps.append(step)
        self.num_without_reasoning += made.lacks_reasoning
        return True

    def is_as(self, place: int, made: AnsweredChat, text: str) -> bool:
        """Return whether the first turns, to one of them, are those of a whole conversation."""
        start, end = self.ends[2 * place : 2 * place + 2]
        return (made.start, made.text) == (start, text[:end])


def sequences_of(
    conversation: Conversation, template: ChatTemplate
) -> tuple[list[TokenSequence], list[str]]:
    """Return the sequences of a trajectory, each step in one of them, if it can be tokenised.

    A sequence goes on as long as the text of a turn begins with the whole text of the turn before.
    A template that rewrites the past, such as one that drops earlier reasoning, begins a new one.

    Returns:
        The sequences; and of each turn that is in none, why.
    """
    faults: list[str] = []
    whole = _appended(conversation, template)
    opened = [whole] if whole else _one_by_one(conversation, template, faults)
    return [_encoded(each, template) for each in opened], faults


def _appended(conversation: Conversation, template: ChatTemplate) -> _Open | None:
    """Return the text of all turns, made in linear time; None if the template does not append.

    Each turn is rendered after the first messages and the answer before it, as if there was nothing
    between. So a text is proposed; it stands if the template makes the same of the whole
    conversation, and of its first half.
    """
    turns, tools = conversation.turns, conversation.tools
    if len(turns) < _MANY:
        return None
    opened, head = _Open(), turns[0].seen
    messages = [[*turn.seen, turn.answer] for turn in turns]
    try:
        opened.takes(0, template.answered(messages[0], tools, is_cut=turns[0].is_cut), "")
        for step, (before, turn) in enumerate(pairwise(turns), 1):
            context = [*head, before.answer]
            text = template.ended(context, tools, is_cut=before.is_cut)
            shown = [*context, *messages[step]]
            if not opened.takes(step, template.answered(shown, tools, is_cut=turn.is_cut), text):
                return None
        text = "".join(opened.parts)
        for place in (len(turns) // 2, len(turns) - 1):
            told = [each for seen in messages[: place + 1] for each in seen]
            made = template.answered(told, tools, is_cut=turns[place].is_cut)
            if not opened.is_as(place, made, text):
                return None
    except UnusableError:
        return None
    return opened


_MANY = 4
"""Turns from which a proposal is worth its rendering."""


def _one_by_one(
    conversation: Conversation, template: ChatTemplate, faults: list[str]
) -> list[_Open]:
    """Return the texts of turns, each rendered after all before; add why others have none."""
    opened: list[_Open] = []
    messages: list[dict[str, Any]] = []
    text = ""
    for step, turn in enumerate(conversation.turns):
        messages += [*turn.seen, turn.answer]
        try:
            made = template.answered(messages, conversation.tools, is_cut=turn.is_cut)
        except UnusableError as error:
            faults.append(str(error))
            continue
        if not opened or not opened[-1].takes(step, made, text):
            opened.append(_Open())
            opened[-1].takes(step, made, "")
        text = made.text
    return opened


def _encoded(opened: _Open, template: ChatTemplate) -> TokenSequence:
    each = template.encode(opened.parts)
    ends = np.cumsum([len(ids) for ids in each]).tolist()
    starts, ends = ends[0::2], ends[1::2]
    return TokenSequence(
        ids=np.array([token for ids in each for token in ids], np.int32),
        spans=tuple(map(Span, opened.steps, starts, ends)),
        num_without_reasoning=opened.num_without_reasoning,
    )
