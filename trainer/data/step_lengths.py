"""The greatest number of tokens that a model allows in a step."""

from dataclasses import dataclass
from typing import Any

from graphcredit.store.errors import InputError
from graphcredit.trainer.data.step_index import StepIndex

_STEADY = {"longrope": "original_max_position_embeddings", "dynamic": "max_position_embeddings"}
"""Rotary embeddings that adapt to the longest sample of a batch and so change all of its samples,
and the configuration field with the length up to which they do not adapt."""

_STRETCHED = frozenset({"linear", "yarn"})
"""Rotary embeddings whose `factor` multiplies the original number of positions."""


@dataclass(frozen=True, slots=True)
class LengthLimit:
    """The greatest number of tokens of a step, and the reason for the limit."""

    num_tokens: int
    reason: str

    def refuse_longer(self, index: StepIndex, model: object) -> None:
        """Raise InputError if a step of a log is longer."""
        length = index.length
        longest = int(length.argmax())
        if length[longest] > self.num_tokens:
            self.refuse(
                f"{int((length > self.num_tokens).sum())} of {len(index)} steps are longer, up to "
                f"{length[longest]} tokens in {index.where(longest)}",
                model,
            )

    def refuse(self, excess: str, model: object) -> None:
        """Raise InputError that reports a longer step, described by `excess`."""
        raise InputError(
            f"steps must have at most {self.num_tokens} tokens with {model}, {self.reason}: "
            f"{excess}. --max-tokens {self.num_tokens} leaves longer steps out and counts them"
        )


def length_limit(config: Any) -> LengthLimit | None:
    """Return the limit on the length of a step, or None if the model has no limit.

    A sliding window is no limit: longer samples are allowed, but their tokens see less.
    """
    text = config.get_text_config()
    rope = getattr(text, "rope_parameters", None) or {}
    values = text.to_dict()
    kinds = [each for each in (rope, *rope.values()) if isinstance(each, dict)]
    limits = [
        LengthLimit(
            {**values, **each}[_STEADY[kind]],
            "whose rotary embedding turns all that is packed with a longer one",
        )
        for each in kinds
        if (kind := each.get("rope_type")) in _STEADY
    ]
    if positions := getattr(text, "max_position_embeddings", None):
        limits.append(
            LengthLimit(
                max([positions, *_stretched(rope, positions)]), "which has no more positions"
            )
        )
    return min(limits, key=lambda limit: limit.num_tokens, default=None)


def _stretched(rope: dict[str, Any], positions: int) -> list[int]:
    """Return the number of positions of a scaled rotary embedding, if its factor tells it.

    Configurations differ in whether `max_position_embeddings` includes the factor already. If each
    kind of layers has its own embedding, it always does.
    """
    if rope.get("rope_type") not in _STRETCHED:
        return []
    original = rope.get("original_max_position_embeddings") or positions
    return [int(original * (rope.get("factor") or 1.0))]
