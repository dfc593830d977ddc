"""TRL's `completions_*.parquet`: a completion a row, and a column for each reward."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from graphcredit.collector.importers.formats.chat_rows import (
    images_placed,
    info_of,
    messages_of_row,
)
from graphcredit.collector.importers.logs.messages import LoggedRollout, LoggedSampling, Omission
from graphcredit.collector.importers.logs.records import Record
from graphcredit.collector.importers.logs.values import RecordError, as_mapping, numbers_of, short

_NO_TOTAL = (
    "TRL logs no total: the reward is the sum of its numeric columns, unless --reward weighs them"
)


def is_row(value: object, path: Path) -> bool:
    """Return whether a record is a row of TRL's `completions_*.parquet`."""
    if not isinstance(value, Mapping):
        return False
    return {"step", "prompt", "completion", "advantage"} <= cast("Mapping[str, Any]", value).keys()


def read(record: Record) -> Iterator[LoggedRollout | Omission]:
    """Yield the rollout of a row of TRL's completions: its rewards are columns, without a total."""
    row = as_mapping(record.value, "a row")
    step = row.get("step")
    if not isinstance(step, int):
        raise RecordError(f"step must be a whole number: got {short(step)}")
    shown, unplaced = images_placed(row)
    rewards = numbers_of({k: v for k, v in row.items() if k not in ("step", "advantage")})
    yield LoggedRollout(
        messages=messages_of_row(shown, LoggedSampling(policy_version=f"step-{step}")),
        record=row,
        label=f"step-{step}",
        iteration=step,
        reward=sum(rewards.values()) if rewards else None,
        rewards=rewards,
        info=info_of(shown),
        left_out=unplaced,
        notes=(_NO_TOTAL,) if len(rewards) > 1 else (),
    )
