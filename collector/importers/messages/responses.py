"""Items of OpenAI's Responses API, as what they say."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphcredit.collector.importers.messages.chat import chat_messages
from graphcredit.collector.importers.messages.rollout import (
    ASSISTANT,
    LoggedSampling,
    Message,
)


def answers_of(items: Sequence[Mapping[str, Any]], settings: LoggedSampling) -> Iterator[Message]:
    """Yield the messages of items; those of one answer of the model become one message."""
    for message in chat_messages(list(items), "output"):
        if message.role != ASSISTANT:
            yield message
            continue
        yield replace(message, sampling=settings)
