"""Spans of all kinds, and what surrounds them, in one shape."""

from collections.abc import Iterator, Mapping
from typing import Any

from graphcredit.collector.importers.formats.row_verdicts import (
    LISTS,
    REWARDS,
    SUCCESSES,
    numbers_at,
    scores_of,
)
from graphcredit.collector.importers.formats.traces.attributes import (
    attributes_of,
    input_of,
    is_read,
    output_of,
)
from graphcredit.collector.importers.messages.values import (
    as_text,
    field_at,
    fields_of,
    first_of,
    items_of,
    parse_json,
    without,
)

Span = dict[str, Any]
"""A span, a run, an observation or a trace: `trace_id`, `id`, `parent_id`, `start_time`, `name`,
`kind`, `session`, `input`, `output`, `scores`, `metadata` and `attributes`; null if it has none.
Beside them is what nobody reads, under the names of the log."""

_TRACE = ("traceId", "trace_id", "context.trace_id", "context.traceId", "root_span_id")
_SPAN = ("spanId", "span_id", "context.span_id", "context.spanId", "id")
_PARENT = (
    *("parentSpanId", "parent_span_id", "parentObservationId", "parent_observation_id"),
    *("parent_run_id", "parent_id", "parentId", "span_parents.0"),
)
_START = (
    *("startTimeUnixNano", "start_time_unix_nano", "startTime", "start_time", "started_at"),
    *("timestamp", "createdAt"),
)
_KIND = (
    *("run_type", "span_data.type", "span_attributes.type"),
    *("attributes.openinference.span.kind", "span_kind"),
    *("attributes.gen_ai.operation.name", "attributes.ai.operationId", "observation_type"),
    *("attributes.traceloop.span.kind", "attributes.mlflow.spanType", "span_type"),
    *("attributes.langfuse.observation.type", "attributes.llm.request.type", "type"),
)
_SESSION = (
    *("sessionId", "group_id", "trace.sessionId", "attributes.gen_ai.conversation.id"),
    *("attributes.session.id", "attributes.langfuse.session.id"),
    *(f"metadata.{name}" for name in ("session_id", "sessionId", "thread_id", "conversation_id")),
)
_METADATA = (
    *("metadata", "extra.metadata", "info.tags", "info.trace_metadata", "trace.metadata"),
    *("attributes.metadata", "span_data.data"),
    *("attributes.langfuse.trace.metadata", "attributes.traceloop.association.properties"),
    *("attributes.ai.telemetry.metadata", "attributes.langfuse.observation.metadata"),
)
_LISTS = ("observations", "spans", "child_runs", "data.spans", "runs")
"""Fields whose items are spans of a trace, or below a span."""

_RESOURCES = ("resourceSpans", "resource_spans")
_COLUMN = "attributes."
"""What the names of Phoenix's columns of attributes begin with."""

_DETAILS = "gen_ai.client.inference.operation.details"
"""The event whose attributes are those that a span may have itself."""

ASIDE = tuple(
    f"spans.*.{name}"
    for name in (
        *("name", "kind", "session", "metadata", "attributes.metadata", "attributes.server"),
        *(f"attributes.gen_ai.{n}" for n in ("system", "provider", "request", "response", "usage")),
        *(f"attributes.gen_ai.{n}" for n in ("operation", "agent", "tool", "conversation")),
        *(f"attributes.llm.{n}" for n in ("model_name", "provider", "system", "request", "usage")),
        *("attributes.llm.invocation_parameters", "attributes.llm.tools"),
        *(f"attributes.ai.{n}" for n in ("model", "settings", "usage", "operationId", "telemetry")),
        *("attributes.ai.prompt.tools", "attributes.operation", "attributes.traceloop.workflow"),
        *("attributes.traceloop.span", "attributes.traceloop.association", "attributes.session"),
        *("attributes.user", "attributes.service", "attributes.telemetry", "attributes.code"),
        "attributes.openinference",
        *("attributes.langfuse.trace", "attributes.langfuse.session", "attributes.tag"),
        *("attributes.mlflow.spanType", "span_data.model_config", "span_data.usage", "status"),
        *("level", "environment", "release", "version", "userId", "htmlPath", "html_path", "unit"),
        *("promptName", "modelParameters", "providedModelName", "internalModel", "usageDetails"),
        *("traceName", "tags", "dotted_order", "serialized", "app_path", "flags", "traceState"),
        *("endTime", "endTimeUnixNano", "completionStartTime", "updatedAt", "costDetails", "usage"),
        *("attributes.input.value", "attributes.output.value"),  # copies, where there are messages
        *("input.*.event.name", "start_timestamp", "end_timestamp"),
        *("output.llm_output", "output.usage", "links", "span_attributes", "summary"),
    )
)
"""What of a span is no part of a conversation; metadata is in `extra` of the first step."""

_READ = frozenset(
    {path.partition(".")[0] for path in (*_TRACE, *_SPAN, *_PARENT, *_START, *_KIND, *_SESSION)}
    | {path.partition(".")[0] for path in (*_METADATA, *_LISTS, *LISTS)}
    | {"input", "inputs", "output", "outputs", "attributes", "events", "context.span_id"}
    | {"context.trace_id", "workflow_name", "op_name", "name", "resource", "scope", "session_id"}
)
"""Fields of a span that are read, or are no part of any conversation."""

_LANGFUSE = frozenset(
    {"sessionId", "session_id", "userId", "user_id", "tags", "scores", "htmlPath", "html_path"}
    | {"bookmarked", "feedback_scores", "latency", "totalCost", "total_cost"}
)
_OBSERVATIONS = frozenset(
    {"GENERATION", "SPAN", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "GUARDRAIL"}
)


def is_trace(value: object) -> bool:
    """Return whether a record is a span, or has spans."""
    if isinstance(value, list):  # a batch of an exporter
        return any(map(is_trace, items_of(value)[:1]))
    row = fields_of(value)
    if any(name in row for name in _RESOURCES):
        return True
    inner = [_items(row, name) for name in ("observations", "child_runs", "spans", "data.spans")]
    if any(items and any(field_at(items[0], path) for path in _SPAN) for items in inner):
        return True
    is_run = ({"run_type", "inputs", "id"} <= row.keys()) or "op_name" in row
    is_agents = row.get("object") in ("trace", "trace.span")
    is_observation = first_of(row, _TRACE) is not None and str(row.get("type")) in _OBSERVATIONS
    is_langfuse = {"id", "input", "output"} <= row.keys() and len(_LANGFUSE & row.keys()) > 1
    ids = (field_at(row, name) for name in (*_SPAN[:-1], *_PARENT[:3]))
    is_named = "name" in row or "span_attributes" in row
    is_span = is_named and any(isinstance(one, str) for one in ids)
    return is_run or is_agents or is_observation or is_langfuse or is_span


def _items(row: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    return [item for item in items_of(field_at(row, name)) if isinstance(item, Mapping)]


def spans_of(value: object, trace_id: str | None = None) -> Iterator[Span]:
    """Yield the spans of a record, and of what is in it.

    Args:
        value: The record.
        trace_id: The trace that it is in, whatever it calls that itself.
    """
    for item in items_of(value):
        yield from spans_of(item)
    if not isinstance(value, Mapping):
        return
    row = fields_of(value)
    if any(name in row for name in _RESOURCES):
        rest = without(row, _RESOURCES)
        for span in _of_resources(row):
            yield from spans_of({**rest, **span})
            rest = {}
        return
    span = _span({**row, **fields_of(row.get("info"))}, trace_id)
    inner = [
        below
        for name in _LISTS
        for item in _items(row, name)
        for below in spans_of(item, span["trace_id"])
    ]
    yield {**span, "trace_id": span["trace_id"] or (inner[0]["trace_id"] if inner else None)}
    yield from inner


def _of_resources(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the spans of an export of OTLP."""
    for resource in (item for name in _RESOURCES for item in _items(row, name)):
        for name in ("scopeSpans", "scope_spans", "instrumentationLibrarySpans"):
            for scope in _items(resource, name):
                yield from _items(scope, "spans")


def _span(row: Mapping[str, Any], trace_id: str | None) -> Span:
    row = {**row, **fields_of(row.get("trace"))}
    columns = {name[len(_COLUMN) :]: row[name] for name in row if name.startswith(_COLUMN)}
    attributes = attributes_of(columns or row.get("attributes"))
    events = [
        {**event, "attributes": attributes_of(event.get("attributes"))}
        for event in (*_items(row, "events"), *(_items(attributes, "events")))
    ]
    for event in events:
        if event.get("name") == _DETAILS:
            attributes = {**attributes, **event["attributes"]}
    whole = {**row, "attributes": attributes, "metadata": _metadata(row, attributes)}
    span_id = as_text(_at(row, _SPAN))
    given, said = first_of(row, ("inputs", "input")), first_of(row, ("outputs", "output"))
    inner = fields_of(row.get("span_data"))
    if given is None:
        given = inner.get("input") if inner else input_of(attributes, events)
    if said is None:
        said = first_of(inner, ("output", "response")) if inner else output_of(attributes, events)
    session = None if "run_type" in row else as_text(row.get("session_id"))
    return {
        **{k: v for k, v in row.items() if k not in _READ and not k.startswith(_COLUMN)},
        "span_data": without(inner, ("input", "output", "response", "type", "name")),
        "trace_id": trace_id or as_text(_at(row, _TRACE)) or span_id,
        "id": span_id,
        "parent_id": as_text(_at(row, _PARENT)) or None,
        "start_time": _at(row, _START),
        "name": first_of(row, ("name", "workflow_name", "op_name")),
        "kind": str(_at(whole, _KIND) or "").lower(),
        "session": session or as_text(_at(whole, _SESSION)),
        "input": given,
        "output": said,
        "scores": {
            **({} if _at(row, _PARENT) else numbers_at(said, (*REWARDS, *SUCCESSES))),
            **scores_of(row, attributes, events),
        },
        "events": [event for event in events if not is_read(event)],
        "metadata": whole["metadata"],
        "attributes": attributes,
    }


def _at(row: Mapping[str, Any], paths: tuple[str, ...]) -> Any:
    found = (field_at(row, path) for path in paths)
    return next((value for value in found if value not in (None, "")), None)


def _metadata(row: Mapping[str, Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a span says of its run: its metadata, and its attributes of one word."""
    whole = {**row, "attributes": attributes}
    found: dict[str, Any] = {}
    for path in _METADATA:
        value = field_at(whole, path)
        found |= fields_of(parse_json(value) if isinstance(value, str) else value)
    names = ("reference_example_id", "datasetItemId", "datasetRunItemId", "tags")
    found |= {name: row[name] for name in names if row.get(name)}
    return found | {k: v for k, v in attributes.items() if isinstance(v, str | int | float)}
