"""A language model that plays: what is asked is put into words, and its answer is an action.

The policy itself is a description that goes to a worker; the model is loaded by the process that
plays, when it is first asked, and stays in memory until another one is needed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphcredit.collector.policies.base import Decision, DecisionRequest, PolicyView, SampledTokens
from graphcredit.collector.policies.engines.base import (
    Dtype,
    Request,
    Response,
    Sampling,
    SamplingEngine,
    arithmetic,
)
from graphcredit.collector.policies.engines.registry import ENGINES
from graphcredit.collector.policies.language.answers import parse_answer
from graphcredit.collector.policies.language.prompts import Template, render
from graphcredit.collector.policies.model_files import ModelFiles, digest_weights, digest_words
from graphcredit.collector.policies.tokens import decode_answer, encode_prompt
from graphcredit.store.errors import InputError

CONCURRENCY = 64
"""Trajectories played at a time where nobody says; their questions are one batch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LanguagePolicy:
    """Samples its actions from a language model."""

    kind: str
    """Name in `ENGINES`."""
    model: ModelFiles
    """Its weights and its tokenizer."""
    template: Template
    """How situations are put into words."""
    sampling: Sampling
    """How answers are sampled."""
    dtype: Dtype = "auto"
    """What the model computes in."""

    @property
    def name(self) -> str:
        """Which weights these are, for example policy-000003."""
        return self.model.version

    @property
    def settings(self) -> Mapping[str, Any]:
        """What decides its actions."""
        return {
            "engine": self.kind,
            "weights": digest_weights(self.model),
            "tokenizer": digest_words(self.model),
            "template": self.template.fingerprint,
            "temperature": self.sampling.temperature,
            "max_new_tokens": self.sampling.max_new_tokens,
            "dtype": arithmetic(self.dtype),
        }

    @property
    def concurrency(self) -> int:
        """Many, because a batch takes little longer than one."""
        return CONCURRENCY

    @property
    def needs_oracle(self) -> bool:
        """It knows no plan."""
        return False

    def decide(self, questions: Sequence[DecisionRequest]) -> list[list[Decision]]:
        """Sample all answers as one batch.

        Raises:
            InputError: A prompt leaves the model no room for an answer, not even without history.
        """
        engine = _loaded(self.kind, self.model, self.dtype)
        prompts = [self._prompt(engine, question.view) for question in questions]
        requests = [
            Request(prompt_ids=prompt, seed=question.rng.getrandbits(63))
            for question, prompt in zip(questions, prompts, strict=True)
            for _ in range(question.count)
        ]
        responses = engine.generate(requests, self.sampling)
        decisions = (
            self._decision(engine, request, response)
            for request, response in zip(requests, responses, strict=True)
        )
        return [[next(decisions) for _ in range(question.count)] for question in questions]

    def _prompt(self, engine: SamplingEngine, view: PolicyView) -> tuple[int, ...]:
        """Return what is asked, without the oldest history where it would cut the answer off."""
        num_shown = min(self.template.history_length, len(view.history))
        while True:
            template = replace(self.template, history_length=num_shown)
            prompt = encode_prompt(engine.tokenizer, render(template, view))
            longest = self.sampling.max_new_tokens if num_shown else 1
            if engine.room is None or len(prompt) + longest <= engine.room:
                return prompt
            if not num_shown:
                raise InputError(
                    f"a prompt and its answer must fit in the {engine.room} tokens of the model "
                    f"{self.model.path}: a prompt without history has {len(prompt)}, at "
                    f"{view.observation.state[:80]!r}. Take a model with more room, or a template "
                    "that says less, under another --run or --iteration"
                )
            num_shown -= 1

    def _decision(self, engine: SamplingEngine, request: Request, response: Response) -> Decision:
        text = decode_answer(engine.tokenizer, response.token_ids, engine.end_ids)
        answer = parse_answer(text, self.template.answer)
        return Decision(
            action=answer.action,
            thought=answer.thought,
            is_malformed=answer.is_malformed,
            tokens=SampledTokens(
                prompt_ids=request.prompt_ids,
                response_ids=response.token_ids,
                response_logprobs=response.logprobs,
                temperature=self.sampling.temperature,
            ),
        )


_engines: dict[str, tuple[tuple[ModelFiles, Dtype], SamplingEngine]] = {}
"""What this process has in memory, by kind of engine."""


def forget() -> None:
    """Drop what the models in memory keep of earlier questions.

    A collection ends with it: the next one does not depend on what was played before.
    """
    for _, engine in _engines.values():
        engine.forget()


def _loaded(kind: str, model: ModelFiles, dtype: Dtype) -> SamplingEngine:
    """Return an engine with a model in it: the one that has it, or one that takes it now."""
    found, engine = _engines.pop(kind, (None, None))
    engine = engine or ENGINES[kind].open()
    if found != (model, dtype):
        engine.load(model.path, dtype)
    _engines[kind] = ((model, dtype), engine)
    return engine
