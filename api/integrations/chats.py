"""The steps of a chat: what the policy saw, and what it did; read as `graphcredit import` does."""

from collections.abc import Sequence
from typing import Any

from graphcredit.collector.importers.messages.chat import chat_message
from graphcredit.collector.importers.messages.rollout import Message, Turn
from graphcredit.collector.importers.rules.states import action_of, state_rule


def message_of(message: object, where: str) -> Message:
    """Return a chat message, whatever its content is: text, null or a list of parts.

    Args:
        message: A mapping, or a pydantic model such as those of verifiers.
        where: What it is called, for messages of errors.

    Raises:
        RecordError: It is no chat message.
    """
    model: Any = message
    return chat_message(model.model_dump() if hasattr(model, "model_dump") else message, where)


def states_and_actions(turns: Sequence[Turn], state: str) -> list[tuple[str, str]]:
    """Return the state and the action of each turn of one trajectory.

    Args:
        turns: The messages of the policy in order, each with those that it saw since its last one.
        state: The rule, as `StepCredit.state` has it.
    """
    if not turns:
        return []
    texts = state_rule(state)(turns).texts
    return [(text, action_of(turn.message)) for text, turn in zip(texts, turns, strict=True)]
