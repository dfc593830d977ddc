"""From chat messages to an advantage for each turn, the same for every framework."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from graphcredit.collector.importers.messages.chat import chat_message
from graphcredit.collector.importers.messages.rollout import Message, Turn
from graphcredit.collector.importers.rules.states import action_of, state_rule
from graphcredit.integrations.step_credit import Episode, StepCredit


@dataclass(frozen=True, kw_only=True, slots=True)
class Chat:
    """A trajectory of chat messages."""

    task_id: str
    """The group: rollouts of one task by one policy."""
    trajectory_id: str
    turns: Sequence[Turn]
    """The messages of the policy in order, each with those that it saw since its last one."""
    reward: float
    """Its total reward."""


def turn_advantages(chats: Iterable[Chat], credit: StepCredit | None = None) -> list[list[float]]:
    """Return the advantage of each turn of each trajectory.

    What makes a state of the messages is `StepCredit.state`.

    Raises:
        OptionError, InputError, StepRefusedError: As `StepCredit.advantages`.
    """
    chats, credit = list(chats), credit or StepCredit()
    values = credit.of_episodes(
        Episode(
            task_id=chat.task_id,
            trajectory_id=chat.trajectory_id,
            steps=_states_and_actions(chat.turns, credit.state),
            reward=chat.reward,
        )
        for chat in chats
    )
    return [[next(values) for _ in chat.turns] for chat in chats]


def turns_of(
    messages: Sequence[Any], where: str, sampled: Sequence[bool] | None = None
) -> list[Turn]:
    """Return the turns of a conversation: each message of the policy, with what it saw before.

    Args:
        messages: Mappings, or pydantic models.
        where: What the conversation is called, for messages of errors.
        sampled: Which messages the policy wrote; without it, those of the assistant.

    Raises:
        RecordError: One is no chat message.
    """
    turns: list[Turn] = []
    seen: list[Message] = []
    for number, raw in enumerate(messages):
        message = message_of(raw, f"message {number} of {where}")
        if sampled[number] if sampled is not None else message.role == "assistant":
            turns.append(Turn(seen=tuple(seen), message=message))
            seen = []
        else:
            seen.append(message)
    return turns


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


def _states_and_actions(turns: Sequence[Turn], state: str) -> list[tuple[str, str]]:
    if not turns:
        return []
    texts = state_rule(state)(turns).texts
    return [(text, action_of(turn.message)) for text, turn in zip(texts, turns, strict=True)]
