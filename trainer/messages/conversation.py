"""The conversation of a trajectory, as a chat template takes it, from what its steps have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from graphcredit.store.chat import Chat, openai_message
from graphcredit.store.files.parse import parse_object
from graphcredit.trainer.messages.pictures import num_images
from graphcredit.trainer.messages.tools import tools_of

COLUMNS = (
    *("trajectory_id", "step_index", "state", "observation", "thought", "action"),
    *("extra", "images"),
)
"""Step columns that are read."""


class UnusableError(ValueError):
    """A step has no conversation that a chat template takes; the text says why, for a count."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatTurn:
    """A step."""

    seen: Chat
    """The messages since the answer before."""
    answer: dict[str, Any]
    """The message of the policy."""
    is_cut: bool = False
    """Whether a limit cut the answer: its policy did not end it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Conversation:
    """The steps of a trajectory from the first on, as far as they can be read."""

    tools: Chat | None
    """Definitions of the tools, as OpenAI has them; None without any."""
    turns: tuple[ChatTurn, ...]
    num_by_columns: int
    """Turns that have no messages: the observation is the user's, the action the answer."""
    fault: str | None
    """Why there are no more turns than these; None if all steps are there."""


def conversation_of(rows: Sequence[Mapping[str, Any]]) -> Conversation:
    """Return the conversation of one trajectory.

    An imported log has its messages in `extra`: what the policy saw before each of its answers, and
    the answer. Where there are none, the user says the observation, and the action is the answer.
    """
    turns: list[ChatTurn] = []
    num_by_columns, fault = 0, None
    if rows[0]["step_index"] != 0:
        fault = "their rollout begins in another shard"
        rows = ()
    extras = [parse_object(row["extra"]) for row in rows]
    num_seen = 0
    for row, extra in zip(rows, extras, strict=True):
        try:
            turn = _turn(extra)
            num_seen += sum(map(num_images, turn.seen)) if turn else 0
            if num_seen != len(row.get("images") or ()):
                raise UnusableError("some of their images are not kept, or stand in no message")
        except UnusableError as error:
            fault = str(error)
            break
        num_by_columns += turn is None
        turns.append(turn or _turn_of_columns(row))
        num_seen += num_images(turns[-1].answer)
    return Conversation(
        tools=tools_of(extras[0].get("log")) if extras else None,
        turns=tuple(turns),
        num_by_columns=num_by_columns,
        fault=fault,
    )


def _turn(extra: Mapping[str, Any]) -> ChatTurn | None:
    message = extra.get("message")
    if not isinstance(message, Mapping) or not message:
        return None
    # An import writes `chat` where the log has its messages in another dialect.
    chat = extra.get("chat") or [
        openai_message(cast("Mapping[str, Any]", each)) if isinstance(each, Mapping) else None
        for each in (*(extra.get("seen") or ()), message)
    ]
    if None in chat:
        raise UnusableError("their messages have images not kept, or parts of no known dialect")
    *seen, answer = cast("Chat", chat)
    if answer["role"] != "assistant":
        raise UnusableError("their answer is of another role than assistant")
    return ChatTurn(seen=seen, answer=answer, is_cut=extra.get("cut") is True)


def _turn_of_columns(row: Mapping[str, Any]) -> ChatTurn:
    shown = row["state"] if row["observation"] is None else row["observation"]
    answer = {"role": "assistant", "content": row["action"] or ""}
    thought = {"reasoning_content": row["thought"]} if row["thought"] else {}
    return ChatTurn(seen=[{"role": "user", "content": shown or ""}], answer={**answer, **thought})
