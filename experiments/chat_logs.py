"""One conversation as thirteen kinds of logs have it, for `experiments.chat_templates`."""

import json
from collections.abc import Mapping
from typing import Any

ARGUMENTS = {"path": "a.py", "old": "x = 1", "new": "x = 2"}
"""Of the call, in an order that is not that of their names."""

_SCHEMA = {"type": "object", "properties": {name: {"type": "string"} for name in ARGUMENTS}}
_TEXT = json.dumps(ARGUMENTS)
_THINKING, _LAST, _SEEN = "The sign is wrong.", "It is fixed.", "a.py has changed"


def _message(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def _openai(**more: Any) -> list[dict[str, Any]]:
    function = {"name": "Edit", "arguments": _TEXT}
    call = {"id": "call_0", "type": "function", "function": function}
    return [
        _message("system", "You mend code."),
        _message("user", "Mend a.py."),
        _message("assistant", None, tool_calls=[call], **more),
        _message("tool", _SEEN, tool_call_id="call_0", name="Edit"),
        _message("assistant", _LAST),
    ]


def _without_tools(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    return [_message("user", "Mend a.py."), *messages]


_NAMED = {"name": "Edit", "description": "Edit a file."}
_FUNCTION = {**_NAMED, "parameters": _SCHEMA}
_TOOLS = {"tools": [{"type": "function", "function": _FUNCTION}]}

_ANTHROPIC = [
    _message("user", "Mend a.py."),
    _message(
        "assistant", [{"type": "tool_use", "id": "toolu_0", "name": "Edit", "input": ARGUMENTS}]
    ),
    _message("user", [{"type": "tool_result", "tool_use_id": "toolu_0", "content": _SEEN}]),
    _message("assistant", [{"type": "text", "text": _LAST}]),
]
_BEDROCK = [
    _message("user", [{"text": "Mend a.py."}]),
    _message("assistant", [{"toolUse": {"toolUseId": "t0", "name": "Edit", "input": ARGUMENTS}}]),
    _message("user", [{"toolResult": {"toolUseId": "t0", "content": [{"text": _SEEN}]}}]),
    _message("assistant", [{"text": _LAST}]),
]
_GEMINI = [
    {"role": "user", "parts": [{"text": "Mend a.py."}]},
    {"role": "model", "parts": [{"functionCall": {"name": "Edit", "args": ARGUMENTS}}]},
    {
        "role": "user",
        "parts": [{"functionResponse": {"name": "Edit", "response": {"result": _SEEN}}}],
    },
    {"role": "model", "parts": [{"text": _LAST}]},
]
_HERMES = [
    {"from": "system", "value": "You mend code."},
    {"from": "human", "value": "Mend a.py."},
    {
        "from": "gpt",
        "value": f'<tool_call>\n{{"name": "Edit", "arguments": {_TEXT}}}\n</tool_call>',
    },
    {"from": "tool", "value": f"<tool_response>\n{_SEEN}\n</tool_response>"},
    {"from": "gpt", "value": _LAST},
]
_RESPONSES = {
    "responses_create_params": {"input": [_message("user", "Mend a.py.")]},
    "response": {
        "output": [
            {"type": "function_call", "call_id": "c0", "name": "Edit", "arguments": _TEXT},
            {"type": "function_call_output", "call_id": "c0", "output": _SEEN},
            {"type": "message", **_message("assistant", [{"type": "output_text", "text": _LAST}])},
        ]
    },
}

LOGS: Mapping[str, Mapping[str, Any]] = {
    "OpenAI": {"messages": _openai(), **_TOOLS},
    "OpenAI, another field beside": {"messages": _openai(annotations=[]), **_TOOLS},
    "OpenRouter, reasoning": {
        "messages": _openai(
            reasoning=_THINKING, reasoning_details=[{"type": "reasoning.text", "text": _THINKING}]
        ),
        **_TOOLS,
    },
    "Anthropic": {"messages": _ANTHROPIC, "tools": [{**_NAMED, "input_schema": _SCHEMA}]},
    "Bedrock": {
        "messages": _BEDROCK,
        "toolConfig": {"tools": [{"toolSpec": {**_NAMED, "inputSchema": {"json": _SCHEMA}}}]},
    },
    "Gemini": {"contents": _GEMINI, "tools": [{"functionDeclarations": [_FUNCTION]}]},
    "Responses": _RESPONSES,
    "ShareGPT, Hermes' calls": {"conversations": _HERMES},
    "thinking in the text": {
        "messages": _without_tools(
            _message("assistant", f"<think>\n{_THINKING}\n</think>\n\n{_LAST}"),
            _message("user", "Thanks."),
            _message("assistant", "Done."),
        )
    },
    "an answer that was cut": {
        "messages": _without_tools(
            _message("assistant", _LAST),
            _message("user", "Explain."),
            _message("assistant", "The sign was wr", finish_reason="length"),
        )
    },
    "a system in the middle": {
        "messages": _without_tools(
            _message("assistant", _LAST),
            _message("system", "Be short."),
            _message("user", "Explain."),
            _message("assistant", "A sign."),
        )
    },
    "two answers in a row": {
        "messages": _without_tools(_message("assistant", "I look."), _message("assistant", _LAST))
    },
    "two messages of the user in a row": {
        "messages": _without_tools(
            _message("user", "Quickly."),
            _message("assistant", _LAST),
            _message("user", "Thanks."),
            _message("assistant", "Done."),
        )
    },
}
"""A record of each kind, with two answers."""
