"""Writers of one set of chats, each in the dialect of a library or a model's server."""

import json
from collections.abc import Callable, Iterator
from typing import Any

Event = tuple[Any, ...]
"""`("user", text)`, `("answer", text, [(id, name, arguments)])`, `("results", [(id, result)])`."""

SYSTEM = "You answer."


def chats() -> Iterator[tuple[str, float, list[Event]]]:
    """Yield task, reward and events: text beside calls, two calls at once, data as results."""
    for number in range(6):
        city, trip = f"Köln {number % 3}", {"days": 2, "by": ["rail", "air"]}
        look = ("a" + str(number), "weather", {"city": city, "at": {"hour": number}})
        both = [("b" + str(number), "book", trip), ("c" + str(number), "list_trips", {})]
        events: list[Event] = [
            ("user", f"Will it rain in {city}?"),
            ("answer", "I look." if number % 2 else "", [look]),
            ("results", [(look, {"rain": number > 2, "by": "DWD"})]),
            ("answer", "", both),
            ("results", [(both[0], "full"), (both[1], {"trips": [], "ok": True})]),
            ("answer", f"No: {number}.", []),
        ]
        yield f"city-{number % 3}", number / 5, events


def _text(result: Any) -> str:
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


def _messages(events: list[Event], **write: Callable[..., Any]) -> list[Any]:
    """Return what the writers make of the events, flat; None is nothing."""
    return [message for kind, *values in events for message in write[kind](*values)]


def _said(role: str) -> Callable[[str], list[Any]]:
    return lambda text: [{"role": role, "content": text}]


def openai(events: list[Event]) -> dict[str, Any]:
    def answer(text: str, calls: list[Any]) -> list[Any]:
        functions = [
            {"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
            for i, n, a in calls
        ]
        message = {"role": "assistant", "content": text or None}
        return [{**message, "tool_calls": functions} if calls else message]

    def results(pairs: list[Any]) -> list[Any]:
        return [
            {"role": "tool", "tool_call_id": call[0], "content": _text(result)}
            for call, result in pairs
        ]

    system = [{"role": "system", "content": SYSTEM}]
    made = _messages(events, user=_said("user"), answer=answer, results=results)
    return {"messages": [*system, *made]}


def openai_and_response(events: list[Event]) -> dict[str, Any]:
    row = openai(events)
    return {"messages": row["messages"][:-1], "response": row["messages"][-1]["content"]}


def chat_completion(events: list[Event]) -> dict[str, Any]:
    messages = openai(events)["messages"]
    choice = {"index": 0, "message": messages[-1], "finish_reason": "stop"}
    return {"messages": messages[:-1], "response": {"id": "chatcmpl-1", "choices": [choice]}}


def json_text(events: list[Event]) -> dict[str, Any]:
    return {"messages": json.dumps(openai(events)["messages"])}


def anthropic(events: list[Event]) -> dict[str, Any]:
    def answer(text: str, calls: list[Any]) -> list[Any]:
        parts: list[Any] = [{"type": "text", "text": text}] if text else []
        parts += [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a in calls]
        return [{"role": "assistant", "content": parts}]

    def results(pairs: list[Any]) -> list[Any]:
        parts = [
            {
                "type": "tool_result",
                "tool_use_id": call[0],
                "content": [{"type": "text", "text": _text(result)}],
            }
            for call, result in pairs
        ]
        return [{"role": "user", "content": parts}]

    made = _messages(events, user=_said("user"), answer=answer, results=results)
    return {"system": SYSTEM, "messages": made}


def claude_code(events: list[Event]) -> dict[str, Any]:
    """One message for each part of an answer, and the results of its calls between them."""
    messages: list[Any] = []
    row, number = anthropic(events), 0
    for message in row["messages"]:
        if message["role"] == "user":
            messages.append(message)
            continue
        number += 1
        for part in message["content"]:
            one = {"id": f"msg_{number}", "type": "message", "role": "assistant"}
            messages.append({**one, "content": [part]})
    return {**row, "messages": messages}


def responses(events: list[Event]) -> dict[str, Any]:
    def answer(text: str, calls: list[Any]) -> list[Any]:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        message = {"type": "message", "id": f"msg_{text}", "role": "assistant", "content": content}
        return ([message] if text else []) + [
            {"type": "function_call", "id": f"fc_{i}", "call_id": i, "name": n}
            | {"arguments": json.dumps(a)}
            for i, n, a in calls
        ]

    def results(pairs: list[Any]) -> list[Any]:
        return [
            {"type": "function_call_output", "call_id": call[0], "output": _text(result)}
            for call, result in pairs
        ]

    made = _messages(events, user=_said("user"), answer=answer, results=results)
    return {"instructions": SYSTEM, "input": made[:1], "output": made[1:]}


def gemini(events: list[Event]) -> dict[str, Any]:
    def answer(text: str, calls: list[Any]) -> list[Any]:
        parts: list[Any] = [{"text": text}] if text else []
        parts += [
            {"functionCall": {"name": n, **({"args": a} if a else {})}, "thoughtSignature": "x"}
            for _, n, a in calls
        ]
        return [{"role": "model", "parts": parts}]

    def results(pairs: list[Any]) -> list[Any]:
        parts = [
            {
                "functionResponse": {"name": call[1]}
                | {"response": {"result": result} if isinstance(result, str) else result}
            }
            for call, result in pairs
        ]
        return [{"role": "user", "parts": parts}]

    def user(text: str) -> list[Any]:
        return [{"role": "user", "parts": [{"text": text}]}]

    made = _messages(events, user=user, answer=answer, results=results)
    return {"systemInstruction": {"parts": [{"text": SYSTEM}]}, "contents": made}


def bedrock(events: list[Event]) -> dict[str, Any]:
    def answer(text: str, calls: list[Any]) -> list[Any]:
        parts: list[Any] = [{"text": text}] if text else []
        parts += [{"toolUse": {"toolUseId": i, "name": n, "input": a}} for i, n, a in calls]
        return [{"role": "assistant", "content": parts}]

    def results(pairs: list[Any]) -> list[Any]:
        parts = [
            {
                "toolResult": {
                    "toolUseId": call[0],
                    "content": [{"text": result} if isinstance(result, str) else {"json": result}],
                    "status": "success",
                }
            }
            for call, result in pairs
        ]
        return [{"role": "user", "content": parts}]

    def user(text: str) -> list[Any]:
        return [{"role": "user", "content": [{"text": text}]}]

    made = _messages(events, user=user, answer=answer, results=results)
    return {"system": [{"text": SYSTEM}], "messages": made}


def _vercel_output(result: Any) -> dict[str, Any]:
    return {"type": "text" if isinstance(result, str) else "json", "value": result}


def vercel(events: list[Event]) -> dict[str, Any]:
    def answer(text: str, calls: list[Any]) -> list[Any]:
        parts: list[Any] = [{"type": "text", "text": text}] if text else []
        parts += [
            {"type": "tool-call", "toolCallId": i, "toolName": n, "input": a} for i, n, a in calls
        ]
        return [{"role": "assistant", "content": parts}]

    def results(pairs: list[Any]) -> list[Any]:
        parts = [
            {"type": "tool-result", "toolCallId": call[0], "toolName": call[1]}
            | {"output": _vercel_output(result)}
            for call, result in pairs
        ]
        return [{"role": "tool", "content": parts}]

    made = _messages(events, user=_said("user"), answer=answer, results=results)
    return {"messages": [{"role": "system", "content": SYSTEM}, *made]}


def vercel_ui(events: list[Event]) -> dict[str, Any]:
    """The interface's messages: one for all steps of an answer, results within the calls."""
    found = {pair[0][0]: pair[1] for kind, *v in events if kind == "results" for pair in v[0]}
    parts: list[Any] = []
    for kind, *values in events[1:]:
        if kind == "answer":
            text, calls = values
            parts.append({"type": "step-start"})
            parts += [{"type": "text", "text": text, "state": "done"}] if text else []
            parts += [
                {"type": f"tool-{n}", "toolCallId": i, "state": "output-available"}
                | {"input": a, "output": found[i]}
                for i, n, a in calls
            ]
    user = {"role": "user", "parts": [{"type": "text", "text": events[0][1]}]}
    system = {"role": "system", "parts": [{"type": "text", "text": SYSTEM}]}
    return {"messages": [system, user, {"role": "assistant", "parts": parts}]}


def otel(events: list[Event]) -> dict[str, Any]:
    def answer(text: str, calls: list[Any]) -> list[Any]:
        parts: list[Any] = [{"type": "text", "content": text}] if text else []
        parts += [{"type": "tool_call", "id": i, "name": n, "arguments": a} for i, n, a in calls]
        return [{"role": "assistant", "parts": parts, "finish_reason": "stop"}]

    def results(pairs: list[Any]) -> list[Any]:
        parts = [
            {"type": "tool_call_response", "id": call[0], "response": result}
            for call, result in pairs
        ]
        return [{"role": "tool", "parts": parts}]

    def user(text: str) -> list[Any]:
        return [{"role": "user", "parts": [{"type": "text", "content": text}]}]

    made = _messages(events, user=user, answer=answer, results=results)
    system = {"role": "system", "parts": [{"type": "text", "content": SYSTEM}]}
    return {"messages": [system, *made]}


def _langchain(events: list[Event], wrap: Callable[[str, dict[str, Any]], Any]) -> list[Any]:
    def answer(text: str, calls: list[Any]) -> list[Any]:
        parts: Any = [{"type": "text", "text": text}] if text else []
        parts += [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a in calls]
        known = [{"name": n, "args": a, "id": i, "type": "tool_call"} for i, n, a in calls]
        fields = {"content": parts if calls else text, "tool_calls": known}
        return [wrap("ai", {**fields, "invalid_tool_calls": [], "id": f"run-{calls}{text}"})]

    def results(pairs: list[Any]) -> list[Any]:
        return [
            wrap("tool", {"content": _text(result), "tool_call_id": call[0], "status": "success"})
            for call, result in pairs
        ]

    def user(text: str) -> list[Any]:
        return [wrap("human", {"content": text, "additional_kwargs": {}})]

    made = _messages(events, user=user, answer=answer, results=results)
    return [wrap("system", {"content": SYSTEM}), *made]


_CLASSES = {"ai": "AIMessage", "tool": "ToolMessage", "human": "HumanMessage"}


def langchain_objects(events: list[Event]) -> dict[str, Any]:
    def wrap(kind: str, fields: dict[str, Any]) -> Any:
        path = ["langchain", "schema", "messages", _CLASSES.get(kind, "SystemMessage")]
        return {"lc": 1, "type": "constructor", "id": path, "kwargs": {**fields, "type": kind}}

    return {"messages": _langchain(events, wrap)}


def langchain_data(events: list[Event]) -> dict[str, Any]:
    return {"messages": _langchain(events, lambda kind, data: {"type": kind, "data": data})}


def langgraph(events: list[Event]) -> dict[str, Any]:
    return {"messages": _langchain(events, lambda kind, fields: {**fields, "type": kind})}


def sharegpt(events: list[Event]) -> dict[str, Any]:
    def answer(text: str, calls: list[Any]) -> list[Any]:
        said = [{"from": "gpt", "value": text}] if text else []
        value = json.dumps([{"name": n, "arguments": a} for _, n, a in calls])
        return said + ([{"from": "function_call", "value": value}] if calls else [])

    def results(pairs: list[Any]) -> list[Any]:
        return [{"from": "observation", "value": _text(result)} for _, result in pairs]

    def user(text: str) -> list[Any]:
        return [{"from": "human", "value": text}]

    made = _messages(events, user=user, answer=answer, results=results)
    return {"system": SYSTEM, "conversations": made}


def smolagents(events: list[Event]) -> dict[str, Any]:
    def answer(text: str, calls: list[Any]) -> list[Any]:
        said = [{"role": "assistant", "content": [{"type": "text", "text": text}]}] if text else []
        listed = [
            {"id": i, "type": "function", "function": {"name": n, "arguments": a}}
            for i, n, a in calls
        ]
        words = [{"type": "text", "text": f"Calling tools:\n{listed}"}]
        return said + ([{"role": "tool-call", "content": words}] if calls else [])

    def results(pairs: list[Any]) -> list[Any]:
        return [
            {"role": "tool-response", "content": [{"type": "text", "text": _text(result)}]}
            for _, result in pairs
        ]

    made = _messages(events, user=_said("user"), answer=answer, results=results)
    return {"messages": [{"role": "system", "content": SYSTEM}, *made]}


def pydantic_ai(events: list[Event]) -> dict[str, Any]:
    def answer(text: str, calls: list[Any]) -> list[Any]:
        parts: list[Any] = [{"part_kind": "text", "content": text}] if text else []
        parts += [
            {"part_kind": "tool-call", "tool_name": n, "args": json.dumps(a), "tool_call_id": i}
            for i, n, a in calls
        ]
        return [{"kind": "response", "parts": parts, "model_name": "m"}]

    def results(pairs: list[Any]) -> list[Any]:
        parts = [
            {"part_kind": "tool-return", "tool_name": call[1], "content": result}
            | {"tool_call_id": call[0]}
            for call, result in pairs
        ]
        return [{"kind": "request", "parts": parts}]

    def user(text: str) -> list[Any]:
        return [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": text}]}]

    made = _messages(events, user=user, answer=answer, results=results)
    made[0]["parts"].insert(0, {"part_kind": "system-prompt", "content": SYSTEM})
    return {"messages": made}


def hermes(events: list[Event]) -> dict[str, Any]:
    """Calls and results are in tags of the texts."""

    def answer(text: str, calls: list[Any]) -> list[Any]:
        objects = [json.dumps({"arguments": a, "name": n}, indent=1) for _, n, a in calls]
        tags = [f"<tool_call>\n{call}\n</tool_call>" for call in objects]
        return [{"from": "gpt", "value": "\n".join([text, *tags]) if tags else text}]

    def results(pairs: list[Any]) -> list[Any]:
        tags = [f"<tool_response>\n{_text(result)}\n</tool_response>" for _, result in pairs]
        return [{"from": "tool", "value": "\n".join(tags)}]

    def user(text: str) -> list[Any]:
        return [{"from": "human", "value": text}]

    made = _messages(events, user=user, answer=answer, results=results)
    return {"conversations": [{"from": "system", "value": SYSTEM}, *made]}


DIALECTS = (
    *(openai, openai_and_response, chat_completion, json_text, anthropic, claude_code, responses),
    *(gemini, bedrock, vercel, vercel_ui, otel, langchain_objects, langchain_data, langgraph),
    *(sharegpt, smolagents, pydantic_ai, hermes),
)
