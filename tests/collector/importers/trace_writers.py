"""Writers of one set of chats as traces and as logs of calls, in the shapes that programs write."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.collector.importers.logs import called, said

Chat = dict[str, Any]
Exchange = tuple[list[dict[str, Any]], dict[str, Any]]


def chats() -> list[Chat]:
    """Return rollouts of two tasks: each looks and listens, goes somewhere, and says so."""
    return [
        {
            "name": f"chat-{task}-{number}",
            "task_id": task,
            "score": float(room == "garden"),
            "messages": [
                said("system", "Find the exit."),
                said("user", f"You are in the {task}."),
                _both(called("look", at="door"), called("listen")) | {"content": "I look first."},
                said("tool", "a door", tool_call_id="c1"),
                said("tool", '{"heard": ["höher", null]}', tool_call_id="c2"),
                called("go", to=room),
                said("tool", f"the {room}", tool_call_id="c1"),
                said("assistant", f"I am in the {room}."),
            ],
        }
        for task in ("hall", "cellar")
        for number, room in enumerate(("garden", "kitchen"))
    ]


def _both(first: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {**first, "tool_calls": [*first["tool_calls"], {**other["tool_calls"][0], "id": "c2"}]}


def exchanges(chat: Chat) -> Iterator[Exchange]:
    """Yield each answer of a chat and what the model was given for it."""
    for number, message in enumerate(chat["messages"]):
        if message["role"] == "assistant":
            yield chat["messages"][:number], message


def gen_ai(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message as OpenTelemetry's conventions for GenAI have it."""
    if message["role"] == "tool":
        call_id = message["tool_call_id"]
        part = {"type": "tool_call_response", "id": call_id, "response": message["content"]}
        return {"role": "tool", "parts": [part]}
    parts = [{"type": "text", "content": message["content"]}] if message["content"] else []
    for call in message.get("tool_calls", ()):
        function = call["function"]
        arguments = json.loads(function["arguments"])
        name = function["name"]
        parts.append({"type": "tool_call", "id": call["id"], "name": name, "arguments": arguments})
    return {"role": message["role"], "parts": parts}


def otlp_attributes(**attributes: Any) -> list[dict[str, Any]]:
    """Return attributes as OTLP writes them in JSON; `__` stands for a dot."""
    kinds = {str: "stringValue", int: "intValue", float: "doubleValue"}
    return [
        {"key": name.replace("__", "."), "value": {kinds[type(value)]: value}}
        for name, value in attributes.items()
    ]


def _spans(chat: Chat, attributes: Callable[[Exchange], dict[str, Any]]) -> Iterator[Any]:
    """Yield a root, a span for each call of the model, and one of a tool, the last one first."""
    trace = chat["name"]
    for number, exchange in reversed(list(enumerate(exchanges(chat)))):
        yield {
            "traceId": trace,
            "spanId": f"{trace}-{number}",
            "parentSpanId": "root",
            "name": "chat m",
            "startTimeUnixNano": str(1000 + number),
            **attributes(exchange),
        }
    yield {
        "traceId": trace,
        "spanId": f"{trace}-tool",
        "parentSpanId": "root",
        "name": "execute_tool look",
        "startTimeUnixNano": "1000",
        "attributes": otlp_attributes(gen_ai__operation__name="execute_tool", input__value="{}"),
    }
    yield {
        "traceId": trace,
        "spanId": "root",
        "name": "agent",
        "startTimeUnixNano": "1",
        "attributes": otlp_attributes(task_id=chat["task_id"], score=chat["score"]),
    }


def otlp(chat: Chat) -> list[Any]:
    """Return a line of an OTLP file exporter."""

    def attributes(exchange: Exchange) -> dict[str, Any]:
        given, answer = exchange
        (system, *spoken) = map(gen_ai, given)
        values = {
            "gen_ai__operation__name": "chat",
            "gen_ai__system_instructions": json.dumps(system["parts"]),
            "gen_ai__input__messages": json.dumps(spoken),
            "gen_ai__output__messages": json.dumps([gen_ai(answer) | {"finish_reason": "stop"}]),
        }
        return {"attributes": otlp_attributes(**values)}

    scope = {"scope": {"name": "s"}, "spans": list(_spans(chat, attributes))}
    resource = {"attributes": otlp_attributes(service__name="agent")}
    return [{"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}]


def traceloop(chat: Chat) -> list[Any]:
    """Return a line a span, with Traceloop's numbered attributes."""

    def fields(prefix: str, message: dict[str, Any]) -> dict[str, Any]:
        values = {f"{prefix}.role": message["role"], f"{prefix}.content": message["content"] or ""}
        for number, call in enumerate(message.get("tool_calls", ())):
            values[f"{prefix}.tool_calls.{number}.id"] = call["id"]
            values[f"{prefix}.tool_calls.{number}.name"] = call["function"]["name"]
            values[f"{prefix}.tool_calls.{number}.arguments"] = call["function"]["arguments"]
        return values

    def attributes(exchange: Exchange) -> dict[str, Any]:
        values: dict[str, Any] = {"llm.request.type": "chat"}
        for number, message in enumerate(exchange[0]):
            values |= fields(f"gen_ai.prompt.{number}", message)
        values |= fields("gen_ai.completion.0", exchange[1])
        return {"attributes": otlp_attributes(**values)}

    return list(_spans(chat, attributes))


def openinference(chat: Chat) -> list[Any]:
    """Return a line a span, as Phoenix exports them."""

    def fields(prefix: str, message: dict[str, Any]) -> dict[str, Any]:
        values = {f"{prefix}.message.role": message["role"]}
        if message["content"]:
            values[f"{prefix}.message.content"] = message["content"]
        for number, call in enumerate(message.get("tool_calls", ())):
            inner = f"{prefix}.message.tool_calls.{number}.tool_call.function"
            values[f"{inner}.name"] = call["function"]["name"]
            values[f"{inner}.arguments"] = call["function"]["arguments"]
        return values

    rows: list[Any] = []
    for span in _spans(chat, lambda exchange: {"exchange": exchange}):
        values: dict[str, Any] = {"openinference.span.kind": "CHAIN"}
        if "exchange" in span:
            values["openinference.span.kind"] = "LLM"
            for number, message in enumerate(span["exchange"][0]):
                values |= fields(f"llm.input_messages.{number}", message)
            values |= fields("llm.output_messages.0", span["exchange"][1])
        else:
            values["metadata"] = json.dumps({"task_id": chat["task_id"]})
        rows.append(
            {
                "name": span["name"],
                "context": {"trace_id": span["traceId"], "span_id": span["spanId"]},
                "parent_id": span.get("parentSpanId"),
                "start_time": f"2026-11-20T09:00:{int(span['startTimeUnixNano']) % 1000:02}Z",
                "attributes": values,
                "annotations": []
                if "parentSpanId" in span
                else [{"name": "exit", "score": chat["score"], "label": "x"}],
            }
        )
    return rows


def span_events(chat: Chat) -> list[Any]:
    """Return a line a span, whose messages are events."""

    def events(exchange: Exchange) -> dict[str, Any]:
        listed = []
        for message in exchange[0]:
            body = {k: v for k, v in message.items() if k != "tool_calls" and v is not None}
            if "tool_calls" in message:
                body["tool_calls"] = json.dumps(message["tool_calls"])
            name = f"gen_ai.{message['role']}.message"
            listed.append({"name": name, "attributes": otlp_attributes(**body)})
        message = json.dumps(exchange[1])
        values = {"index": 0, "finish_reason": "stop", "message": message}
        listed.append({"name": "gen_ai.choice", "attributes": otlp_attributes(**values)})
        attributes = otlp_attributes(gen_ai__operation__name="chat")
        return {"attributes": attributes, "events": listed}

    return list(_spans(chat, events))


def vercel(chat: Chat) -> list[Any]:
    """Return a line a span of Vercel's AI SDK."""

    def attributes(exchange: Exchange) -> dict[str, Any]:
        calls = [
            {
                "toolCallId": c["id"],
                "toolName": c["function"]["name"],
                "args": c["function"]["arguments"],
            }
            for c in exchange[1].get("tool_calls", ())
        ]
        values = {
            "ai__operationId": "ai.generateText.doGenerate",
            "ai__prompt__messages": json.dumps(exchange[0]),
            "ai__response__text": exchange[1]["content"] or "",
        }
        if calls:
            values["ai__response__toolCalls"] = json.dumps(calls)
        return {"attributes": otlp_attributes(**values)}

    return list(_spans(chat, attributes))


def langfuse(chat: Chat) -> list[Any]:
    """Return a trace of Langfuse with its observations and scores."""
    observations = [
        {
            "id": f"{chat['name']}-{number}",
            "traceId": chat["name"],
            "type": "GENERATION",
            "startTime": f"2026-11-20T09:00:0{number}Z",
            "input": given,
            "output": answer,
        }
        for number, (given, answer) in enumerate(exchanges(chat))
    ]
    tool = {"id": f"{chat['name']}-t", "traceId": chat["name"], "type": "TOOL", "output": "a door"}
    return [
        {
            "id": chat["name"],
            "timestamp": "2026-11-20T09:00:00Z",
            "name": "agent",
            "sessionId": None,
            "tags": [],
            "input": chat["messages"][1]["content"],
            "output": chat["messages"][-1]["content"],
            "metadata": {"task_id": chat["task_id"]},
            "scores": [{"name": "exit", "value": chat["score"], "dataType": "NUMERIC"}],
            "observations": [*observations, tool],
        }
    ]


def langfuse_rows(chat: Chat) -> list[Any]:
    """Return a row for each observation, and one for the score."""
    (trace,) = langfuse(chat)
    rows = trace.pop("observations")
    rows[-1]["metadata"] = {"task_id": chat["task_id"]}
    return [*rows, {"traceId": chat["name"], "name": "exit", "value": chat["score"]}]


def langsmith(chat: Chat) -> list[Any]:
    """Return a run of LangSmith with its child runs."""
    ids = {"trace_id": chat["name"], "parent_run_id": chat["name"]}
    runs = [
        {
            "id": f"{chat['name']}-{number}",
            **ids,
            "run_type": "llm",
            "start_time": f"2026-11-20T09:00:0{number}Z",
            "inputs": {"messages": given},
            "outputs": {"choices": [{"index": 0, "message": answer}]},
        }
        for number, (given, answer) in enumerate(exchanges(chat))
    ]
    return [
        {
            "id": chat["name"],
            "trace_id": chat["name"],
            "run_type": "chain",
            "name": "agent",
            "start_time": "2026-11-20T09:00:00Z",
            "inputs": {"question": chat["messages"][1]["content"]},
            "outputs": {"output": chat["messages"][-1]["content"]},
            "reference_example_id": chat["task_id"],
            "feedback_stats": {"correctness": {"n": 1, "avg": chat["score"]}},
            "child_runs": runs,
        }
    ]


def agents(chat: Chat) -> list[Any]:
    """Return a trace and the spans of OpenAI's Agents SDK."""
    metadata = {"task_id": chat["task_id"], "score": str(chat["score"])}
    rows: list[Any] = [
        {"object": "trace", "id": chat["name"], "workflow_name": "agent", "metadata": metadata}
    ]
    for number, (given, answer) in enumerate(exchanges(chat)):
        data = {"type": "generation", "input": given, "output": [answer], "model": "m"}
        rows.append(
            {
                "object": "trace.span",
                "id": f"{chat['name']}-{number}",
                "trace_id": chat["name"],
                "parent_id": None,
                "started_at": f"2026-11-20T09:00:0{number}Z",
                "span_data": data,
            }
        )
    return rows


def lite_llm(chat: Chat) -> list[Any]:
    """Return a payload of LiteLLM for each call."""
    return [
        {
            "id": f"{chat['name']}-{number}",
            "trace_id": chat["name"],
            "call_type": "acompletion",
            "startTime": 1700000000.5 + number,
            "messages": given,
            "response": {"object": "chat.completion", "choices": [{"message": answer}]},
            "metadata": {"task_id": chat["task_id"], "score": chat["score"]},
        }
        for number, (given, answer) in enumerate(exchanges(chat))
    ]


def requests(chat: Chat) -> list[Any]:
    """Return a row with request and response for each call, without any id of the whole."""
    return [
        {
            "task_id": chat["task_id"],
            "score": chat["score"] if len(given) > 5 else None,
            "request": {"model": "m", "messages": given},
            "response": {"choices": [{"message": answer}]},
        }
        for given, answer in exchanges(chat)
    ]


def responses(chat: Chat) -> list[Any]:
    """Return objects of the Responses API, each of which names the one before."""
    rows: list[Any] = []
    known = 0
    for given, answer in exchanges(chat):
        new = [
            {
                "type": "function_call_output",
                "call_id": message["tool_call_id"],
                "output": message["content"],
            }
            if message["role"] == "tool"
            else message
            for message in given[known:]
        ]
        known = len(given) + 1
        items: list[Any] = []
        if answer["content"]:
            text = {"type": "output_text", "text": answer["content"]}
            items.append({"type": "message", "role": "assistant", "content": [text]})
        calls = answer.get("tool_calls", ())
        items += [{"type": "function_call", "call_id": c["id"], **c["function"]} for c in calls]
        rows.append(
            {
                "id": f"{chat['name']}-{known}",
                "object": "response",
                "previous_response_id": rows[-1]["id"] if rows else None,
                "input": new,
                "output": items,
                "metadata": {"scenario": chat["task_id"], "score": str(chat["score"])},
            }
        )
    return rows


def growing(chat: Chat) -> list[Any]:
    """Return a row for each call with all messages so far, without any id of the whole."""
    return [
        {"task_id": chat["task_id"], "reward": chat["score"], "messages": [*given, answer]}
        for given, answer in exchanges(chat)
    ]


WRITERS: dict[str, Callable[[Chat], list[Any]]] = {
    writer.__name__: writer
    for writer in (
        *(otlp, traceloop, openinference, span_events, vercel, langfuse, langfuse_rows),
        *(langsmith, agents, lite_llm, requests, responses, growing),
    )
}
