"""What a row of a log of calls says: request and answer, session, ids, time, metadata."""

from collections.abc import Mapping
from typing import Any

from graphcredit.collector.importers.formats.row_columns import opened_row
from graphcredit.collector.importers.formats.row_messages import (
    ANSWERS,
    LISTS,
    PROMPTS,
    SYSTEMS,
    chat_of,
    list_of,
    pair_of,
)
from graphcredit.collector.importers.messages.values import (
    NESTED,
    as_text,
    field_at,
    fields_of,
    first_of,
    parse_json,
    snake_cased,
    without,
)

_REQUESTS = ("request", "request_body", "requestBody")
_RESPONSES = ("response", "response_body", "responseBody")
_LISTS = ("calls", "llm_calls", "model_calls", "requests", "interactions", "exchanges", "steps")
"""Fields that may have the calls of a rollout."""

_SESSIONS = (
    *("session_id", "conversation_id", "thread_id", "conversation.id", "trace_id"),
    *("litellm_trace_id", "litellm_session_id", "chat_id", "dialog_id", "dialogue_id"),
    *("trajectory_id", "episode_id", "rollout_id"),
)
_TIMES = (
    *("created_at", "created", "startTime", "start_time", "request_time", "timestamp", "time"),
    "ts",
)
ASIDE = tuple(
    f"{before}{name}"
    for before in ("", "calls.*.")
    for name in (
        *("metadata", "request.metadata", "request.tools", "request.model", "error", "startTime"),
        *("endTime", "call_type", "response.usage", "response.candidates.*.finishReason"),
        *("response.finish_reason", "response.service_tier", "request_tags", "model_parameters"),
        *("hidden_params", "model_map_information", "response_cost", "api_base", "model_group"),
    )
)
"""What of a call is no part of a conversation; the metadata is in `extra` of the first step."""

_PREVIOUS = "previous_response_id"


def is_exchange(row: Mapping[str, Any]) -> bool:
    """Return whether a row can be nothing but a call."""
    has_request = any(isinstance(row.get(name), Mapping | str) for name in _REQUESTS)
    is_response = row.get("object") == "response" and isinstance(row.get("output"), list)
    has_answer = any(name in row for name in _RESPONSES)
    return is_response or (has_request and has_answer) or ("call_type" in row and has_answer)


def calls_within(row: Mapping[str, Any]) -> str | None:
    """Return the field of a row that has the calls of a rollout."""
    for name in _LISTS:
        items = row.get(name)
        if isinstance(items, list) and items and is_exchange(fields_of(items[0])):
            return name
    return None


def session_of(row: Mapping[str, Any]) -> str | None:
    """Return the id of the session that a row is of."""
    inner = [fields_of(row[name]) for name in (*NESTED, *_REQUESTS) if name in row]
    found = (field_at(snake_cased(part), name) for part in (row, *inner) for name in _SESSIONS)
    return next((as_text(value) for value in found if isinstance(value, str | int)), None)


def response_before(row: Mapping[str, Any]) -> str | None:
    """Return the id of the response that a row goes on from."""
    parts = (row, *(fields_of(row.get(name)) for name in (*_REQUESTS, *_RESPONSES)))
    return next((as_text(id_) for part in parts if (id_ := part.get(_PREVIOUS))), None)


def response_of(row: Mapping[str, Any]) -> str | None:
    """Return the id of a row's object of the Responses API."""
    answers = (fields_of(row.get(name)) for name in _RESPONSES)
    objects = [each for each in (row, *answers) if each.get("object") == "response"]
    return as_text(objects[0].get("id")) if objects else None


def parsed_row(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row without an object around its messages, and what it has as JSON text parsed."""
    inner = {name: row[name] for name in ("input", "output") if isinstance(row.get(name), Mapping)}
    bodies = {k: v[f"{k}BodyJson"] for k, v in inner.items() if f"{k}BodyJson" in v}  # Bedrock's
    if len(bodies) == 2:
        row = {**without(row, inner), "request": bodies["input"], "response": bodies["output"]}
    texts = {n: row[n] for n in (*_REQUESTS, *_RESPONSES, "messages") if _is_json(row.get(n))}
    row = {**row, **{name: parse_json(text) for name, text in texts.items()}} if texts else row
    return row if is_exchange(row) else opened_row(row)


def _is_json(value: object) -> bool:
    return isinstance(value, str) and value[:1] in ("{", "[") and parse_json(value) is not None


def _fields(row: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the fields with what a model was given and with its answer, if that is apart."""
    if row.get("object") == "response":
        return "input", "output"
    pair = pair_of(row) or (None, None)
    given = next((name for name in _REQUESTS if row.get(name) is not None), None)
    given = given or list_of(row) or pair[0]
    names = (*_RESPONSES, *ANSWERS)
    return given, next((n for n in names if n != given and row.get(n) is not None), None)


def exchange_of(row: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return what a model was given, and what it answered: null where a row has it in one list."""
    given, said = _fields(row)
    request = None if given is None else chat_of(row.get(given))
    system = None if given in _REQUESTS else first_of(row, SYSTEMS)
    request = request if system is None else {"messages": request, "system": system}
    return request, None if said is None else row.get(said)


def time_of(row: Mapping[str, Any]) -> Any:
    """Return when a call was made; null if a row does not say."""
    return first_of({**fields_of(row.get("response")), **row}, _TIMES)


def facts_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a row says besides its messages."""
    request = fields_of(first_of(row, _REQUESTS))
    metadata = {**fields_of(request.get("metadata")), **_metadata(row)}
    facts = without(row, {*filter(None, _fields(row)), *SYSTEMS})
    settings = without(request, (*LISTS, *PROMPTS, *SYSTEMS, "metadata"))
    more = {"metadata": metadata, "request": settings}
    return {**facts, **{name: value for name, value in more.items() if value}}


def _metadata(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata of a row, which LiteLLM has as JSON text in its database."""
    value = row.get("metadata")
    return fields_of(parse_json(value) if isinstance(value, str) else value)
