"""Random play in the words of a language model: what behaviour is cloned from.

It plays as `random` does, action for action, and records the tokens with which a model would have
said so. They were not sampled, so they have no log-probabilities.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphcredit.collector.policies.base import Decision, DecisionRequest, SampledTokens
from graphcredit.collector.policies.language.answers import parse_answer, spoken
from graphcredit.collector.policies.language.prompts import Template, render
from graphcredit.collector.policies.model_files import ModelFiles, digest_words
from graphcredit.collector.policies.random import RandomPolicy
from graphcredit.collector.policies.tokens import (
    cached_tokenizer,
    decode_answer,
    encode_answer,
    encode_prompt,
)
from graphcredit.store.errors import InputError


@dataclass(frozen=True, kw_only=True, slots=True)
class TutorPolicy:
    """Any admissible action, with a model's tokens for it."""

    model: ModelFiles
    """Whose tokenizer it is."""
    template: Template
    """How situations are put into words."""

    @property
    def name(self) -> str:
        """What it is, and whose tokens it has."""
        return f"tutor:{self.model.version}"

    @property
    def settings(self) -> Mapping[str, Any]:
        """What decides its prompts."""
        return {"tokenizer": digest_words(self.model), "template": self.template.fingerprint}

    @property
    def concurrency(self) -> int:
        """It gains nothing from being asked several questions at once."""
        return 1

    @property
    def needs_oracle(self) -> bool:
        """It follows no plan."""
        return False

    def decide(self, questions: Sequence[DecisionRequest]) -> list[list[Decision]]:
        """Answer one question after the other."""
        return [
            [self._worded(question, action) for action in played]
            for question, played in zip(questions, RandomPolicy().decide(questions), strict=True)
        ]

    def _worded(self, question: DecisionRequest, played: Decision) -> Decision:
        tokenizer = cached_tokenizer(self.model.path, self.model.stamp)
        text = spoken(played.thought, played.action, self.template.answer)
        ids = encode_answer(tokenizer, text)
        self._check_said(tokenizer, ids, played)
        prompt = encode_prompt(tokenizer, render(self.template, question.view))
        tokens = SampledTokens(
            prompt_ids=prompt, response_ids=ids, response_logprobs=None, temperature=None
        )
        return Decision(action=played.action, thought=played.thought, tokens=tokens)

    def _check_said(self, tokenizer: Any, ids: Sequence[int], played: Decision) -> None:
        """Raise InputError unless the tokens say the action: a clone would say something else."""
        said = decode_answer(tokenizer, ids, frozenset(ids[-1:]))
        if parse_answer(said, self.template.answer).action != played.action:
            raise InputError(
                f"the tokenizer of {self.model.path} must be able to say every action: "
                f"{played.action!r} becomes {said!r}. Train it on this environment's text"
            )
