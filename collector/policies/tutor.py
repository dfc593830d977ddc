"""The tutor policy: random play in the tokens of a language model, to imitate with `train`.

It takes the same actions as `random`, and records the tokens with which a model would have answered
so. They were not sampled, so they have no log-probabilities.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphcredit.collector.policies.base import Decision, DecisionRequest, Policy, SampledTokens
from graphcredit.collector.policies.language.answers import parse_answer, spoken
from graphcredit.collector.policies.language.prompts import Template, render
from graphcredit.collector.policies.model_files import ModelFiles, digest_words, notes_of
from graphcredit.collector.policies.scripted import RandomPolicy
from graphcredit.collector.policies.tokens import (
    cached_tokenizer,
    decode_answer,
    encode_answer,
    encode_prompt,
)
from graphcredit.store.errors import InputError


@dataclass(frozen=True, kw_only=True, slots=True)
class TutorPolicy(Policy):
    """Random admissible actions, with a model's tokens for them."""

    model: ModelFiles
    template: Template

    @property
    def name(self) -> str:
        """`tutor:` and the version of the model."""
        return f"tutor:{self.model.version}"

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings that determine its prompts."""
        return {"tokenizer": digest_words(self.model), "template": self.template.fingerprint}

    @property
    def notes(self) -> tuple[str, ...]:
        """Says that the model has no chat template, if so."""
        return notes_of(self.model)

    def decide(self, questions: Sequence[DecisionRequest]) -> list[list[Decision]]:
        """Decide one request after the other."""
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
        """Raise InputError unless the tokens decode to the action: a clone would learn another."""
        said = decode_answer(tokenizer, ids, frozenset(ids[-1:]))
        if parse_answer(said, self.template.answer).action != played.action:
            raise InputError(
                f"the tokenizer of {self.model.path} must be able to encode every action: "
                f"{played.action!r} becomes {said!r}. Train it on this environment's text"
            )
