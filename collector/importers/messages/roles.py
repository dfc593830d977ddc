"""Who says a message, in whatever object around it."""

from collections.abc import Mapping
from typing import Any, cast

from graphcredit.collector.importers.logs.json_text import parse_python
from graphcredit.collector.importers.messages.parts import text_of_content
from graphcredit.collector.importers.messages.rollout import ASSISTANT, SYSTEM, TOOL, USER
from graphcredit.collector.importers.messages.values import fields_of, first_of, parse_json

ROLES = {
    **dict.fromkeys(("assistant", "gpt", "ai", "model", "agent", "bot", "chatbot"), ASSISTANT),
    **dict.fromkeys(("system", "developer"), SYSTEM),
    **dict.fromkeys(("user", "human", "environment", "env"), USER),
    **dict.fromkeys(("tool", "function", "observation", "ipython"), TOOL),
    **dict.fromkeys(("tool_response", "tool_result", "function_response", "toolresult"), TOOL),
}
CALLS = ("function_call", "tool_call")
"""Roles of messages that are a call, as text."""

CALLS_TEXT = "calls_text"
"""Field of a message as `opened` returns it: the text of its calls."""

_PYDANTIC = {"request": USER, "response": ASSISTANT}
"""Kinds of Pydantic AI's messages."""

_SPEAKERS = ("role", "from", "author", "speaker", "sender", "type")
CONTENTS = (
    *("content", "value", "text", "message", "blocks", "output", "result", "response", "refusal"),
)


def role_of(raw: Mapping[str, Any]) -> str | None:
    """Return the role of a message, which `opened` made plain; None if it has none."""
    for name in _SPEAKERS:
        role = raw.get(name)
        if isinstance(role, Mapping):
            role = cast("Mapping[str, Any]", role).get("role")
        if isinstance(role, str):
            return ROLES.get(_plain(role)) or ROLES.get(role.lower()) or _agent(raw)
    return _PYDANTIC.get(str(raw.get("kind"))) if "parts" in raw else None


def _agent(raw: Mapping[str, Any]) -> str | None:
    """Return the role of a message whose role or source is the name of an agent.

    AutoGen has it as the source of a text, its logs of several agents as the role: `WebSurfer`,
    `Orchestrator (thought)`.
    """
    role, source, kind = raw.get("role"), raw.get("source"), raw.get("type")
    if isinstance(role, str) and isinstance(raw.get("content"), str):
        return ASSISTANT if role[:1].isupper() else None
    if not (isinstance(source, str) and isinstance(kind, str) and kind.endswith("TextMessage")):
        return None
    return ROLES.get(source.lower(), ASSISTANT)


def _plain(role: str) -> str:
    """Return a role or a class as `ROLES` has it: `tool-response`, `MessageRole.USER`, `AIMessage`.

    A role of its own, such as `message`, stays.
    """
    name = role.lower().rpartition(".")[2].replace("-", "_")
    return name.removesuffix("chunk").removesuffix("message").rstrip("_")


def content_of(raw: Mapping[str, Any]) -> Any:
    """Return the content of a message, as text or as parts."""
    parts = raw.get("parts")
    return parts if isinstance(parts, list) and parts else first_of(raw, CONTENTS)


def opened(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message without the object around it, and a call that is a message as one.

    LangChain has the fields in `data`, or in `kwargs` beside the path of a class; coding agents
    have them in `message`, ADK has `parts` in `content`.
    """
    inner = raw.get("message")
    if isinstance(inner, Mapping) and "role" in inner:
        return opened(cast("Mapping[str, Any]", inner))
    inner = raw.get("info")
    if isinstance(inner, Mapping) and "role" in inner and "parts" in raw:  # opencode
        return {**cast("Mapping[str, Any]", inner), "parts": raw["parts"]}
    inner = first_of(raw, ("data", "kwargs"))
    if isinstance(inner, Mapping):
        path = raw.get("id")
        kind = path[-1] if isinstance(path, list) and path else raw.get("type")
        raw = {"type": kind, **cast("Mapping[str, Any]", inner)}
    if more := fields_of(raw.get("additional_kwargs")):
        raw = {**more, **{name: value for name, value in raw.items() if value not in (None, [])}}
    content = raw.get("content")
    if isinstance(content, Mapping) and "parts" in content:
        raw = {**cast("Mapping[str, Any]", content), **{k: raw[k] for k in raw if k != "content"}}
    return _call(raw) if is_call_role(raw) else raw


def is_call_role(raw: Mapping[str, Any]) -> bool:
    """Return whether the role of a message says that it is a call."""
    role = first_of(raw, ("role", "from"))
    return isinstance(role, str) and _plain(role) in CALLS


def _call(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message that is a call as OpenAI has it; as text, if that does not say which."""
    content = content_of(raw)
    text = text_of_content(content)
    starts = [at for at in map(text.find, "[{") if at >= 0]
    calls = content if isinstance(content, Mapping) else None
    if calls is None and starts:  # of smolagents as Python writes them
        listed = text[min(starts) :]
        calls = parse_json(listed) or parse_python(listed)
    calls = [calls] if isinstance(calls, Mapping) else calls
    if isinstance(calls, list) and all(map(fields_of, cast("list[object]", calls))):
        return {"role": ASSISTANT, "tool_calls": calls, CALLS_TEXT: text}
    return {**raw, "role": ASSISTANT}
