"""OpenHands: folders of completions, with a file for each call of a model."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from graphcredit.collector.importers.formats.calls import log, rows
from graphcredit.collector.importers.formats.sessions.folders import with_folder
from graphcredit.collector.importers.logs.files import Record, RowError
from graphcredit.collector.importers.messages.rollout import Rollouts
from graphcredit.collector.importers.messages.values import fields_of

ASIDE = (*rows.ASIDE, *(f"calls.*.{name}" for name in ("kwargs", "args", "fncall_response")))

_FOLDER = "llm_completions"
"""Its folders are called after instances."""


def is_row(value: object, path: Path | None = None) -> bool:
    """Return whether a record is a call of a model as OpenHands logs it."""
    row = fields_of(value)
    is_answered = isinstance(row.get("response"), Mapping)
    return is_answered and {"messages", "cost", "timestamp"} <= row.keys()


def gather(records: Iterator[Record], limit: int) -> Iterator[Record]:
    """Yield a record for each conversation that the calls of a file or of its folder are."""
    yield from log.gather(map(_named, with_folder(records, is_row)), limit)


def _named(record: Record) -> Record:
    folder = record.path.parent
    if isinstance(record.value, RowError) or folder.parent.name != _FOLDER:
        return record
    return replace(record, value={"instance_id": folder.name, **record.value})


def read(record: Record) -> Rollouts:
    """Yield the rollouts of a conversation."""
    return log.read(record)
