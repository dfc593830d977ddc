"""AReaL's dumps of rollouts: `{version}/{task_id}.jsonl`, with the texts of prompt and answer."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from graphcredit.collector.importers.logs.chat import split_thinking
from graphcredit.collector.importers.logs.messages import (
    ASSISTANT,
    USER,
    LoggedRollout,
    LoggedSampling,
    Message,
    Omission,
)
from graphcredit.collector.importers.logs.records import Record
from graphcredit.collector.importers.logs.values import (
    RecordError,
    as_list,
    as_mapping,
    as_number,
    as_text,
    short,
    text_of_content,
    version_of,
)

_TEXTS = ("prompt", "completion", "segments")


def is_row(value: object, path: Path) -> bool:
    """Return whether a record is a row of a dump."""
    if not isinstance(value, Mapping):
        return False
    names = cast("Mapping[str, Any]", value).keys()
    return {"task_id", "sample_idx", "tail_version", "prompt", "completion"} <= names


def read(record: Record) -> Iterator[LoggedRollout | Omission]:
    """Yield the rollout of a row; newer versions have its turns as segments."""
    row = as_mapping(record.value, "a row")
    version = version_of(row.get("head_version"), row["tail_version"])
    task = as_text(row["task_id"])
    step = row["tail_version"]
    yield LoggedRollout(
        messages=tuple(_messages(row, LoggedSampling(policy_version=version))),
        record=row,
        label=f"{task}:{row['sample_idx']}",
        task=task,
        iteration=step if isinstance(step, int) else None,
        reward=as_number(row.get("reward"), "reward"),
        info={k: v for k, v in row.items() if k not in _TEXTS and v is not None},
    )


def _messages(row: Mapping[str, Any], sampling: LoggedSampling) -> Iterator[Message]:
    whole = (("prompt", row["prompt"]), ("gen", row["completion"]))
    segments = as_list(row.get("segments") or [], "segments")
    parts = [as_mapping(segment, "a segment") for segment in segments]
    for kind, text in [(part.get("role"), part.get("text")) for part in parts] or whole:
        content = text_of_content(text)
        if kind == "gen":
            thought, spoken = split_thinking(content)
            yield Message(
                role=ASSISTANT,
                text=spoken,
                thought=thought,
                sampling=sampling,
                source={"role": kind, "text": content},
            )
        elif kind in ("prompt", "context"):
            yield Message(role=USER, text=content, source={"role": kind, "text": content})
        else:
            raise RecordError(f"a segment's role must be prompt, gen or context: got {short(kind)}")
