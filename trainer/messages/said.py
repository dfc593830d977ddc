"""What an answer says: whether its text shows it all, and where it was cut."""

from collections.abc import Mapping
from typing import Any

from graphcredit.trainer.messages.conversation import UnusableError
from graphcredit.trainer.messages.ends import TurnEnds


def inline_thinking(message: Mapping[str, Any]) -> str | None:
    """Return the reasoning in tags that the text of a message begins with; None if there is none.

    A tag that is not closed is no reasoning: the answer was cut there.
    """
    before, closed, _ = message["content"].partition("</think>")
    return before.partition("<think>")[2] if closed and "<think>" in before else None


def refuse_loss(message: Mapping[str, Any], answer: str) -> None:
    """Raise UnusableError if an answer lacks the text or a call of its message."""
    said = message["content"].rpartition("</think>")[2].strip()
    if said not in answer:
        raise UnusableError("the chat template leaves out the text of their answer")
    names = [call["function"]["name"] for call in message.get("tool_calls", ())]
    if not all(name in answer for name in names):
        raise UnusableError("the chat template leaves out calls of tools")


def up_to_cut(text: str, message: Mapping[str, Any], ends: TurnEnds) -> str:
    """Return a text up to the last that an answer says, which a limit cut.

    Args:
        text: Of the conversation; the answer is its last message.
        message: The answer.
        ends: What the template writes behind answers.

    Raises:
        UnusableError: The text does not show it.
    """
    said = _last_said(message)
    if said is None:
        return ends.without_end(text, message)
    at = text.rfind(said)
    if at < 0:
        raise UnusableError("the chat template does not show where their answer was cut")
    return text[: at + len(said)]


def _last_said(message: Mapping[str, Any]) -> str | None:
    """Return the last text of an answer; None if it is a whole call."""
    if calls := message.get("tool_calls"):
        arguments = calls[-1]["function"]["arguments"]
        return arguments if isinstance(arguments, str) else None
    values = (value for name, value in message.items() if name not in ("role", "content"))
    texts = [message["content"], *(value for value in values if isinstance(value, str))]
    return next((text.strip() for text in texts if text.strip()), "")
