"""Spans of OpenTelemetry, Phoenix and Langfuse: recognised, and refused with the reason."""

from collections.abc import Mapping
from pathlib import Path

from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.rollout import Rollouts
from graphcredit.collector.importers.messages.values import RecordError, field_at, fields_of

REFUSAL = (
    "spans cannot be imported: they tell which calls were made, not which of them are one rollout "
    "with a reward. Export the messages of each rollout, with its reward and its task, as JSONL"
)


def is_row(value: object, path: Path) -> bool:
    """Return whether a record is a span, or a trace of spans."""
    row = fields_of(value)
    is_trace = isinstance(row.get("observations"), list) and isinstance(row.get("trace"), Mapping)
    ids = field_at(row, "context.span_id"), row.get("span_id"), row.get("parentObservationId")
    is_span = any(isinstance(one, str) for one in ids) and "name" in row
    return is_trace or is_span or "resourceSpans" in row


def read(record: Record) -> Rollouts:
    """Refuse the record.

    Raises:
        RecordError: Always.
    """
    raise RecordError(REFUSAL)
    yield
