"""The policy of a language model: it writes a prompt, samples an answer, and parses the action.

The policy object is only a description. The process that answers loads the model at the first
request, and keeps it in memory until another one is needed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphcredit.collector.policies.base import (
    Decision,
    DecisionRequest,
    Policy,
    PolicyView,
    SampledTokens,
)
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
from graphcredit.collector.policies.model_files import (
    ModelFiles,
    digest_weights,
    digest_words,
    notes_of,
)
from graphcredit.collector.policies.tokens import decode_answer, encode_prompt
from graphcredit.store.errors import InputError

Question = tuple[PolicyView, Sequence[int]]
"""What a policy sees, and the seed of each decision to make."""

CONCURRENCY = 64
"""Default number of trajectories to play at a time; their requests form one batch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LanguagePolicy(Policy):
    """Samples its actions from a language model."""

    kind: str
    """Name in `ENGINES`."""
    model: ModelFiles
    template: Template
    sampling: Sampling
    dtype: Dtype = "auto"
    server: str = ""
    """URL of the server that samples; empty if the process that plays does so."""

    @property
    def name(self) -> str:
        """The version of the weights, for example policy-000003."""
        return self.model.version

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings that determine its actions."""
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
        """Many: a batch takes little longer than a single request."""
        return CONCURRENCY

    @property
    def notes(self) -> tuple[str, ...]:
        """Says that the model has no chat template, if so."""
        return notes_of(self.model)

    def decide(self, questions: Sequence[DecisionRequest]) -> list[list[Decision]]:
        """Sample all answers as one batch.

        Raises:
            InputError: A prompt leaves no room for an answer, even without history.
        """
        return self.answer(
            [
                (each.view, [each.rng.getrandbits(63) for _ in range(each.count)])
                for each in questions
            ]
        )

    def answer(self, questions: Sequence[Question]) -> list[list[Decision]]:
        """Return a decision for each seed of each question, sampled as one batch."""
        if not questions:
            return []
        engine = load(self)
        prompts = [self._prompt(engine, view) for view, _ in questions]
        requests = [
            Request(prompt_ids=prompt, seed=seed)
            for (_, seeds), prompt in zip(questions, prompts, strict=True)
            for seed in seeds
        ]
        responses = engine.generate(requests, self.sampling)
        decisions = (
            self._decision(engine, request, response)
            for request, response in zip(requests, responses, strict=True)
        )
        return [[next(decisions) for _ in seeds] for _, seeds in questions]

    def _prompt(self, engine: SamplingEngine, view: PolicyView) -> tuple[int, ...]:
        """Return the prompt; the oldest history is dropped if the answer would not fit."""
        num_shown = min(self.template.history_length, len(view.history))
        while True:
            template = self.template.changed(history_length=num_shown)
            prompt = encode_prompt(engine.tokenizer, render(template, view))
            longest = self.sampling.max_new_tokens if num_shown else 1
            if engine.room is None or len(prompt) + longest <= engine.room:
                return prompt
            if not num_shown:
                raise InputError(
                    f"a prompt and its answer must fit in the {engine.room} tokens of the model "
                    f"{self.model.path}: a prompt without history has {len(prompt)}, at "
                    f"{view.observation.state[:80]!r}. Use a model with a longer context, or a "
                    "shorter template, with another --run or --iteration"
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


_engines: dict[tuple[str, str], tuple[tuple[ModelFiles, Dtype], SamplingEngine]] = {}
"""The engines of this process and their loaded models, by kind of engine and server."""


def forget() -> None:
    """Empty the engines' caches of earlier requests.

    Each collection ends with this call, so that the next one does not depend on it.
    """
    for _, engine in _engines.values():
        engine.forget()


def load(policy: LanguagePolicy, *, anew: bool = False) -> SamplingEngine:
    """Return an engine with a policy's model; load the model unless the engine has it already.

    Args:
        policy: The policy.
        anew: Load it in any case: a server may have been started again since.
    """
    key = (policy.kind, policy.server)
    wanted = (policy.model, policy.dtype)
    found, engine = _engines.pop(key, (None, None))
    if engine is None or anew:
        found, engine = None, ENGINES[policy.kind].open(policy.server)
    if found != wanted:
        engine.load(policy.model.path, policy.dtype)
    _engines[key] = (wanted, engine)
    return engine
