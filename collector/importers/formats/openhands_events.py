"""Events of OpenHands to messages.

Events are of two generations. Older ones name an `action` or an `observation`; those of the agent
SDK have a `kind`. Several events may be parts of one answer of the model.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from graphcredit.collector.importers.formats.sessions.lines import UNSEEN
from graphcredit.collector.importers.messages.chat import chat_message, seen
from graphcredit.collector.importers.messages.parts import text_of_content
from graphcredit.collector.importers.messages.rollout import (
    ASSISTANT,
    SYSTEM,
    TOOL,
    USER,
    Message,
    ToolCall,
)
from graphcredit.collector.importers.messages.shapes import tool_call
from graphcredit.collector.importers.messages.values import (
    RecordError,
    as_text,
    canonical,
    field_at,
    fields_of,
    first_of,
    short,
    without,
)

_UNSEEN = frozenset(
    {"agent_state_changed", "change_agent_state", "recall", "null", "condensation"}
    | {"condensation_request", "pause", "resume"}
)
"""Older events that no model sees."""

_WHOLE = "tool_call_metadata.model_response.choices.0.message"
"""The answer of the model with all its calls; some logs are without it."""

_WORDS = ("message", "think")
"""Older actions that are no call."""

_NO_ARGUMENTS = frozenset(
    {"action", "source", "id", "timestamp", "message", "cause", "thought", "hidden", "blocking"}
    | {"llm_metrics", "tool_call_metadata", "is_confirmed", "confirmation_state", "action_risk"}
    | {"security_risk", "keep_prompt", "kernel_init_code", "wait_for_response", "is_static"}
    | {"is_input", "images_urls", "image_urls", "file_urls", "cwd", "outputs"}
)
"""Fields of an older action that are none of its arguments."""


_OF_OLDER = {"args", "source", "extras"}
"""Fields of which an event of the older kinds has one, unless it has a content alone."""


def is_event(value: object) -> bool:
    """Return whether a value is an event of OpenHands."""
    event = fields_of(value)
    kind = event.get("kind")
    names = (event.get("action"), event.get("observation"))
    is_named = sum(isinstance(name, str) for name in names) == 1 and "role" not in event
    is_said = "content" in event and event.get("action") in (None, "message")
    is_older = is_named and (is_said or bool(_OF_OLDER & event.keys()))
    return is_older or (isinstance(kind, str) and kind.endswith(("Event", "Observation")))


@dataclass(kw_only=True, slots=True)
class Events:
    """Makes messages of events."""

    messages: list[Message] = field(default_factory=list[Message])
    left_out: Counter[str] = field(default_factory=Counter[str])
    _answers: dict[str, int] = field(default_factory=dict[str, int])
    """Index of the message of each response of the model."""

    def add(self, event: Mapping[str, Any]) -> None:
        """Add an event."""
        if isinstance(event.get("kind"), str):
            self._add_sdk(event)
        elif isinstance(event.get("action"), str):
            self._add_action(event)
        elif isinstance(event.get("observation"), str):
            self._add_observation(event)
        else:
            raise RecordError(f"an event must have an action or an observation: got {short(event)}")

    def _see(self, role: str, content: object, event: Mapping[str, Any], **more: Any) -> None:
        self.messages.append(seen(role, content, event, **more))

    def _answer(self, message: Message, response: object) -> None:
        """Add an answer, or what it adds to the answer that an earlier event began."""
        end = len(self.messages)
        index = self._answers.setdefault(response, end) if isinstance(response, str) else end
        if index == end:
            self.messages.append(message)
            return
        begun = self.messages[index]
        parts = begun.source.get("parts", [begun.source])
        self.messages[index] = replace(
            begun,
            tool_calls=(*begun.tool_calls, *message.tool_calls),
            source={"parts": [*parts, message.source]},
        )

    def _add_sdk(self, event: Mapping[str, Any]) -> None:
        match event["kind"]:
            case "SystemPromptEvent":
                parts = (event.get("system_prompt"), event.get("dynamic_context"))
                self._see(SYSTEM, [part for part in parts if part], event)
            case "MessageEvent":
                raw = fields_of(event.get("llm_message"))
                more = event.get("extended_content") or []  # what skills add
                if more and isinstance(raw.get("content"), list):
                    raw = {**raw, "content": [*raw["content"], *more]}
                message = chat_message(raw, "llm_message")
                is_answer = message.role == ASSISTANT
                response = event.get("llm_response_id") if is_answer else None
                self._answer(replace(message, source=dict(event)), response)
            case "ActionEvent":
                self._answer(_sdk_action(event), event.get("llm_response_id"))
            case "ObservationEvent":
                content, result = event.get("observation"), fields_of(event.get("observation"))
                if result:
                    content = first_of(result, ("content", "output", "text"))
                self._see(TOOL, _whole(content, result.get("metadata")), event)
            case "AgentErrorEvent" | "UserRejectObservation":
                text = first_of(event, ("error", "rejection_reason"))
                self._see(TOOL, text, event, is_refused=True)
            case "CondensationSummaryEvent":
                self._see(USER, event.get("summary"), event)
            case _:
                self.left_out[UNSEEN] += 1

    def _add_action(self, event: Mapping[str, Any]) -> None:
        arguments = event.get("args")
        values = fields_of(arguments) if isinstance(arguments, Mapping) else event
        kind, source = event["action"], event.get("source") or self._speaker()
        if kind == "system":
            self._see(SYSTEM, values.get("content"), event)
        elif kind in _UNSEEN:
            self.left_out[UNSEEN] += 1
        elif source == "user":
            content = first_of(values, ("content", "message"))
            urls = first_of(values, ("image_urls", "images_urls"))
            parts = [content, {"type": "image", "image_urls": urls}]
            self._see(USER, parts if urls else content, event)
        else:
            response = as_text(field_at(event, "tool_call_metadata.model_response.id"))
            has_all = bool(field_at(event, f"{_WHOLE}.tool_calls"))  # as that of its first call
            if response not in self._answers or not has_all:
                self._answer(_action(kind, values, event), response)

    def _speaker(self) -> str:
        """Return whose message an event without a source is: the user's answers the agent's."""
        if not self.messages or self.messages[-1].role == SYSTEM:
            return "user"
        last = self.messages[-1]
        is_talk = last.role == ASSISTANT and not last.tool_calls
        return "user" if is_talk else "agent"

    def _add_observation(self, event: Mapping[str, Any]) -> None:
        kind = event["observation"]
        if kind in _UNSEEN:
            self.left_out[UNSEEN] += 1
        else:
            content = _whole(event.get("content"), field_at(event, "extras.metadata"))
            self._see(TOOL, content, event, is_refused=kind == "user_rejected")


def _whole(content: object, metadata: object) -> object:
    """Return a result with what the model is told of it around it, such as an exit code."""
    before, after = (fields_of(metadata).get(name) for name in ("prefix", "suffix"))
    if not (before or after):
        return content
    return f"{before or ''}{text_of_content(content)}{after or ''}"


def _sdk_action(event: Mapping[str, Any]) -> Message:
    called = event.get("tool_call")
    name = as_text(event.get("tool_name")) or "tool"
    return Message(
        role=ASSISTANT,
        text=text_of_content(event.get("thought")),
        thought=text_of_content(event.get("reasoning_content")),
        tool_calls=(
            tool_call(called, "tool_call")
            if called is not None
            else _call(name, event.get("action")),
        ),
        source=dict(event),
    )


def _call(name: str, arguments: Any) -> ToolCall:
    return ToolCall(name=name, arguments=canonical(arguments), logged=arguments)


def _action(kind: str, values: Mapping[str, Any], event: Mapping[str, Any]) -> Message:
    """Return an older action: the whole answer of the model if the event has it."""
    whole = field_at(event, _WHOLE)
    if isinstance(whole, Mapping) and (whole.get("tool_calls") or kind in _WORDS):
        raw = {"role": "assistant", **fields_of(whole)}
        return replace(chat_message(raw, "model_response"), source=dict(event))
    thought = values.get("thought") or fields_of(whole).get("content")
    thought = text_of_content(
        field_at(thought, "text") if isinstance(thought, Mapping) else thought
    )
    if kind == "message":
        text, calls = text_of_content(values.get("content")), ()
    else:
        call = _call(kind, without(values, _NO_ARGUMENTS))
        text, thought, calls = thought, "", (call,)
    return Message(role=ASSISTANT, text=text, thought=thought, tool_calls=calls, source=dict(event))
