"""Items of OpenAI's Responses API, as what they say."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphcredit.collector.importers.messages.answers import tokens_of
from graphcredit.collector.importers.messages.chat import chat_messages
from graphcredit.collector.importers.messages.rollout import (
    ASSISTANT,
    LoggedSampling,
    Message,
)


def answers_of(items: Sequence[Mapping[str, Any]], settings: LoggedSampling) -> Iterator[Message]:
    """Yield the messages of items; those of one answer of the model become one message.

    Raises:
        RecordError: The type of an item is unknown.
    """
    for message in chat_messages(list(items), "output"):
        if message.role != ASSISTANT:
            yield message
            continue
        tokens = tokens_of(message)
        sampling = settings
        if tokens is not None:
            sampling = replace(
                settings,
                prompt_ids=tokens.get("prompt_token_ids"),
                response_ids=tokens["generation_token_ids"],
                response_logprobs=tokens.get("generation_log_probs"),
            )
        yield replace(message, sampling=sampling)
