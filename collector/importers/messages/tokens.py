"""The tokens of answers, by the names that logs have for them: the same for every format.

A format says nothing of tokens unless it has them where nobody would look: `samplings` looks at
the object of each answer, and at the whole record, whose mask cuts one sequence into the answers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, cast

from graphcredit.collector.importers.messages.answers import sources_of
from graphcredit.collector.importers.messages.rollout import (
    NO_SAMPLING,
    LoggedSampling,
    Message,
    are_plain,
)

_PROMPT = ("prompt_ids", "prompt_token_ids")
_RESPONSE = (
    *("response_ids", "response_token_ids", "completion_ids", "completion_token_ids"),
    *("generation_token_ids", "output_token_ids", "output_ids", "token_ids"),
)
_SEQUENCE = (*_RESPONSE, "input_ids")
"""Names of a record for the tokens that its mask cuts."""
_LOGPROBS = (
    *("response_logprobs", "completion_logprobs", "generation_log_probs", "generation_logprobs"),
    *("rollout_log_probs", "sampling_per_token_logps", "old_log_probs", "logprobs"),
)
_MASK = (
    *("response_mask", "completion_mask", "env_mask", "tool_mask", "loss_mask"),
    *("token_loss_mask", "assistant_mask", "assistant_masks"),
)
_OF_ANSWER = frozenset({*_RESPONSE, "logprobs", "tokens"})
"""An answer with none of these has no tokens."""
_TOKEN_ID = "token_id:"
"""Before a token in OpenAI's log-probabilities, where a server writes ids for texts."""

WITHOUT_TOKENS = "without tokens: "
"""Before the reason in the name of a count."""

NO_IDS = "no token ids in the log"
NO_PROMPT = "token ids without those of the prompt"
NO_LOGPROBS = "token ids without log-probabilities beside steps that have them"
OTHER_LENGTH = "not as many log-probabilities as token ids"
OTHER_TURNS = "a mask of other turns than the messages"


def samplings(
    answers: Sequence[Message], record: Mapping[str, Any]
) -> tuple[list[LoggedSampling], list[str]]:
    """Return how each answer was sampled, and why each without tokens has none.

    An answer has the ids of its prompt and of itself, and their log-probabilities if any answer of
    the rollout has them; or none of the three, since nobody could train on it.

    Args:
        answers: The messages of the policy.
        record: The record that they were read from.
    """
    is_unsaid = all(message.sampling is NO_SAMPLING for message in answers)
    found: list[_Tokens | str] = (
        [NO_IDS] * len(answers)
        if is_unsaid and are_plain(answers)
        else [_of_message(message) for message in answers]
    )
    if all(each is NO_IDS for each in found) and not any(m.sampling.response_ids for m in answers):
        found = _of_record(record, len(answers)) or found
    if is_unsaid and all(each is NO_IDS for each in found):
        return [NO_SAMPLING] * len(answers), [NO_IDS] * len(answers)
    has_logprobs = any(isinstance(each, tuple) and each[2] is not None for each in found)
    made: list[LoggedSampling] = []
    reasons: list[str] = []
    for message, each in zip(answers, found, strict=True):
        if isinstance(each, tuple) and each[2] is None and has_logprobs:
            each = NO_LOGPROBS
        prompt, response, logprobs = (None, None, None) if isinstance(each, str) else each
        if isinstance(each, str):
            reasons.append(each)
        made.append(
            message.sampling
            if prompt is message.sampling.prompt_ids and response is message.sampling.response_ids
            else replace(
                message.sampling,
                prompt_ids=prompt,
                response_ids=response,
                response_logprobs=logprobs,
            )
        )
    return made, reasons


_Tokens = tuple[list[int], list[int], list[float] | None]


def _of_message(message: Message) -> _Tokens | str:
    sampling = message.sampling
    if sampling.response_ids is not None:
        return _checked(sampling.prompt_ids, sampling.response_ids, sampling.response_logprobs)
    for source in sources_of(message):
        if source.keys().isdisjoint(_OF_ANSWER):
            continue
        for values in (source, source.get("tokens")):
            if isinstance(values, Mapping):
                found = _of_object(cast("Mapping[str, Any]", values))
                if found is not NO_IDS:
                    return found
    return NO_IDS


def _of_object(values: Mapping[str, Any]) -> _Tokens | str:
    response, logprobs = _first(values, _RESPONSE), _logprobs(values)
    if response is None:
        response = _ids_of_logprobs(values.get("logprobs"))
    return NO_IDS if response is None else _checked(_first(values, _PROMPT), response, logprobs)


def _of_record(record: Mapping[str, Any], num_answers: int) -> "list[_Tokens | str] | None":
    """Return the tokens of each answer of a record's one sequence; None if it has none."""
    ids, mask = _first(record, _SEQUENCE), _first(record, _MASK)
    if ids is None:
        return None
    prompt, logprobs = _first(record, _PROMPT) or [], _logprobs(record)
    if mask is None:
        mask = [1] * len(ids)
    elif len(mask) == len(prompt) + len(ids):
        mask = mask[len(prompt) :]
    spans = [(start, end) for is_sampled, start, end in runs_of(mask) if is_sampled]
    if len(mask) != len(ids) or len(spans) != num_answers:
        return list[_Tokens | str]([OTHER_TURNS] * num_answers)
    if logprobs is not None and len(logprobs) == len(prompt) + len(ids):
        logprobs = logprobs[len(prompt) :]
    if logprobs is not None and len(logprobs) != len(ids):
        return list[_Tokens | str]([OTHER_LENGTH] * num_answers)
    return [
        _checked([*prompt, *ids[:start]], ids[start:end], logprobs and logprobs[start:end])
        for start, end in spans
    ]


def _checked(
    prompt: list[int] | None, response: list[int], logprobs: list[float] | None
) -> _Tokens | str:
    if not prompt:
        return NO_PROMPT
    if logprobs is not None and len(logprobs) != len(response):
        return OTHER_LENGTH
    return prompt, response, logprobs


def runs_of(mask: Sequence[Any]) -> Iterator[tuple[bool, int, int]]:
    """Yield the runs of equal flags: the flag, the first token, and the one after the last.

    Args:
        mask: Of each token, whether the policy sampled it.
    """
    start = 0
    for is_sampled, run in groupby(mask, key=bool):
        end = start + len(list(run))
        yield is_sampled, start, end
        start = end


def _first(values: Mapping[str, Any], names: Iterable[str]) -> list[Any] | None:
    """Return the first field that is a list of numbers, and is not empty."""
    for name in names:
        found = values.get(name)
        if isinstance(found, list) and found and isinstance(found[0], int | float):
            return cast("list[Any]", found)
    return None


def _logprobs(values: Mapping[str, Any]) -> list[float] | None:
    found = _first(values, _LOGPROBS)
    if found is not None:
        return found
    content = _entries(values.get("logprobs"))
    logprobs = [entry.get("logprob") for entry in content]
    return cast("list[float]", logprobs) if logprobs and None not in logprobs else None


def _ids_of_logprobs(logprobs: object) -> list[int] | None:
    tokens = [str(entry.get("token")) for entry in _entries(logprobs)]
    if not tokens or not all(token.startswith(_TOKEN_ID) for token in tokens):
        return None
    numbers = [token.removeprefix(_TOKEN_ID) for token in tokens]
    return [int(number) for number in numbers] if all(map(str.isdecimal, numbers)) else None


def _entries(logprobs: object) -> list[Mapping[str, Any]]:
    """Return the entries of OpenAI's `logprobs`: an object with `content`, or its list."""
    fields = cast("Mapping[str, Any]", logprobs) if isinstance(logprobs, Mapping) else {}
    content = fields.get("content", logprobs)
    entries = cast("list[Any]", content) if isinstance(content, list) else []
    return [entry for entry in entries if isinstance(entry, Mapping)]
