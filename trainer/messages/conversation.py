"""The conversation of a trajectory, as a chat template takes it, from what its steps have."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from graphcredit.store.files.parse import parse_json, parse_object

Chat: TypeAlias = list[dict[str, Any]]
"""Messages with `role` and `content`, and `tool_calls` whose arguments are objects."""

ReadMessage: TypeAlias = Callable[[Mapping[str, Any], bool], Chat | None]
"""Reads a message of another dialect than OpenAI's, given whether it is the policy's answer; None
if it is in no dialect."""

COLUMNS = (
    *("trajectory_id", "step_index", "state", "observation", "thought", "action"),
    "extra",
)
"""Step columns that are read."""

_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_KEPT = ("name", "tool_call_id", "reasoning_content", "reasoning", "thinking")
_TEXTS = ("text", "input_text", "output_text")
_IMAGES = ("image", "image_url", "input_image")


class UnusableError(ValueError):
    """A step has no conversation that a chat template takes; the text says why, for a count."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """A step."""

    seen: Chat
    """The messages since the answer before."""
    answer: dict[str, Any]
    """The message of the policy."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Conversation:
    """The steps of a trajectory from the first on, as far as they can be read."""

    tools: Chat | None
    """Definitions of the tools, as OpenAI has them; None without any."""
    turns: tuple[Turn, ...]
    num_by_columns: int
    """Turns that have no messages: the observation is the user's, the action the answer."""
    fault: str | None
    """Why there are no more turns than these; None if all steps are there."""


def conversation_of(
    rows: Sequence[Mapping[str, Any]], read_message: ReadMessage | None = None
) -> Conversation:
    """Return the conversation of one trajectory.

    An imported log has its messages in `extra`: what the policy saw before each of its answers, and
    the answer. Where there are none, the user says the observation, and the action is the answer.

    Args:
        rows: Its steps in order, with `COLUMNS`.
        read_message: Reads messages that are not OpenAI's.
    """
    turns: list[Turn] = []
    num_by_columns, fault = 0, None
    if rows[0]["step_index"] != 0:
        fault = "their trajectory begins in another shard"
        rows = ()
    extras = [parse_object(row["extra"]) for row in rows]
    for row, extra in zip(rows, extras, strict=True):
        try:
            turn = _turn(extra, read_message)
        except UnusableError as error:
            fault = str(error)
            break
        num_by_columns += turn is None
        turns.append(turn or _turn_of_columns(row))
    return Conversation(
        tools=_tools(extras[0]) if extras else None,
        turns=tuple(turns),
        num_by_columns=num_by_columns,
        fault=fault,
    )


def _turn(extra: Mapping[str, Any], read_message: ReadMessage | None) -> Turn | None:
    message = extra.get("message")
    if not isinstance(message, Mapping) or not message:
        return None
    seen = [m for each in extra.get("seen") or () for m in _messages(each, read_message, False)]
    answers = _messages(cast("Mapping[str, Any]", message), read_message, True)
    if len(answers) != 1 or answers[0]["role"] != "assistant":
        raise UnusableError("their answer is more than one message")
    return Turn(seen=seen, answer=answers[0])


def _turn_of_columns(row: Mapping[str, Any]) -> Turn:
    shown = row["state"] if row["observation"] is None else row["observation"]
    answer = {"role": "assistant", "content": row["action"] or ""}
    thought = {"reasoning_content": row["thought"]} if row["thought"] else {}
    return Turn(seen=[{"role": "user", "content": shown or ""}], answer={**answer, **thought})


def _messages(value: Any, read_message: ReadMessage | None, is_answer: bool) -> Chat:
    """Return the chat messages that a message of a log is.

    Raises:
        UnusableError: It has images, or is in no dialect that is known.
    """
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        message = _message(fields)
        if message is not None:
            return [message]
        read = None if read_message is None else read_message(fields, is_answer)
        if read is not None:
            return read
    raise UnusableError("their messages are in no dialect that has role and content")


def _message(raw: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a message of OpenAI's shape as templates take it; None if it is none."""
    role = _ROLES.get(str(raw.get("role")))
    text = _text(raw.get("content"))
    calls = _calls(raw.get("tool_calls"))
    if role is None or text is None or calls is None or (not text and raw.get("function_call")):
        return None
    kept = {name: raw[name] for name in _KEPT if raw.get(name)}
    return {"role": role, "content": text, **kept, **({"tool_calls": calls} if calls else {})}


def _text(content: Any) -> str | None:
    """Return the text of a content; None if it has parts of other kinds.

    Raises:
        UnusableError: It has an image.
    """
    if content is None or isinstance(content, str):
        return content or ""
    texts: list[str] = []
    for part in cast("list[Any]", content) if isinstance(content, list) else [None]:
        fields = cast("Mapping[str, Any]", part) if isinstance(part, Mapping) else {}
        if fields.get("type") in _IMAGES:
            raise UnusableError("their prompts have images, whose places only logged tokens tell")
        text = fields.get("text")
        if fields.get("type") not in _TEXTS or not isinstance(text, str):
            return None
        texts.append(text)
    return "".join(texts)


def _calls(raw: Any) -> Chat | None:
    """Return tool calls with arguments as objects; None if they are of another shape."""
    calls: Chat = []
    for call in cast("list[Any]", raw or []):
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            return None
        named = {"name": function["name"], "arguments": _arguments(function.get("arguments"))}
        of_id = {"id": call["id"]} if call.get("id") else {}
        calls.append({**of_id, "type": "function", "function": named})
    return calls


def _arguments(raw: Any) -> Any:
    """Return arguments as an object in the order of the log; a text that is none as it is."""
    if not isinstance(raw, str):
        return raw or {}
    try:
        value = parse_json(raw)
    except ValueError:
        return raw
    return value if isinstance(value, dict) else raw


def _tools(extra: Mapping[str, Any]) -> Chat | None:
    """Return the definitions of tools that a record has beside its messages."""
    log = extra.get("log")
    raw = cast("Mapping[str, Any]", log).get("tools") if isinstance(log, Mapping) else None
    if isinstance(raw, str):
        try:
            raw = json.loads(raw)
        except ValueError:
            return None
    if not isinstance(raw, list):
        return None
    tools = [_tool(cast("Mapping[str, Any]", t)) for t in raw if isinstance(t, Mapping)]
    return tools or None


def _tool(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return a definition in OpenAI's shape: Anthropic's have `input_schema`, and no `function`."""
    if isinstance(raw.get("function"), Mapping) or "name" not in raw:
        return dict(raw)
    function = {name: raw[name] for name in ("name", "description") if name in raw}
    schema = raw.get("input_schema", raw.get("parameters", {"type": "object", "properties": {}}))
    return {"type": "function", "function": {**function, "parameters": schema}}
