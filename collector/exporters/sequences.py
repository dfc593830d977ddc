"""The token sequences of a trajectory: one for all steps whose prompts go on where it ends."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class StepTokens:
    """The tokens of a step."""

    step_index: int
    prompt: Sequence[int]
    response: Sequence[int]
    logprobs: Sequence[float] | None
    """Of the response; None where the log has none."""
    advantage: float | None
    """None without credit: then its response is no part of the loss."""


@dataclass(slots=True)
class TrainingSequence:
    """Tokens of one step or more, with a value for each."""

    step_indices: list[int] = field(default_factory=list[int])
    input_ids: list[int] = field(default_factory=list[int])
    loss_mask: list[int] = field(default_factory=list[int])
    """1 for each token that the policy sampled, of a step with credit."""
    advantages: list[float] = field(default_factory=list[float])
    """Of the step; 0 where the mask is 0."""
    logprobs: list[float] | None = field(default_factory=list[float])
    """Of the sampler; 0 where the mask is 0; None if a step of it has none."""

    def takes(self, step: StepTokens) -> bool:
        """Append a step whose prompt begins with all that is here; return whether it does."""
        known = len(self.input_ids)
        if list(step.prompt[:known]) != self.input_ids:
            return False
        self.step_indices.append(step.step_index)
        self._append(step.prompt[known:], 0, 0.0, [0.0] * (len(step.prompt) - known))
        is_in_loss = step.advantage is not None
        logprobs = step.logprobs if is_in_loss else [0.0] * len(step.response)
        self._append(step.response, int(is_in_loss), step.advantage or 0.0, logprobs)
        return True

    def _append(
        self, ids: Sequence[int], mask: int, advantage: float, logprobs: Sequence[float] | None
    ) -> None:
        self.input_ids += ids
        self.loss_mask += [mask] * len(ids)
        self.advantages += [advantage] * len(ids)
        if logprobs is None:
            self.logprobs = None
        if self.logprobs is not None and logprobs is not None:
            self.logprobs += logprobs


def sequences_of(steps: Iterable[StepTokens]) -> Iterator[TrainingSequence]:
    """Yield the sequences of the steps of one trajectory, in order.

    A prompt that does not begin with the whole sequence before begins a new one: templates that
    drop earlier reasoning, prompts with a window of the past.
    """
    opened: TrainingSequence | None = None
    for step in steps:
        if opened is not None and opened.takes(step):
            continue
        if opened is not None:
            yield opened
        opened = TrainingSequence()
        opened.takes(step)
    if opened is not None:
        yield opened
