"""A job of Harbor around ATIF trajectories: task, rewards, early ends, tokens, and parts of files.

`{trial}/result.json` describes the trial of `{trial}/agent/trajectory.json`; a task in several
steps has `{trial}/steps/{step}/agent/trajectory.json`, and rewards for each step.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from graphcredit.collector.importers.logs.messages import (
    ASSISTANT,
    LoggedRollout,
    LoggedSampling,
    Message,
    Omission,
)
from graphcredit.collector.importers.logs.records import Record
from graphcredit.collector.importers.logs.values import (
    as_list,
    as_mapping,
    as_text,
    field_at,
    numbers_of,
    parse_json,
)

_CONTINUATION = re.compile(r"[.-]cont-(\d+)(?=\.json)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """What a job says of a trajectory; empty if it is in no job."""

    result: Mapping[str, Any] = field(default_factory=dict[str, Any])
    id: str | None = None
    name: str | None = None
    task: str | None = None
    rewards: Mapping[str, float] = field(default_factory=dict[str, float])


def trial_of(path: Path) -> Trial:
    """Return the trial of a trajectory."""
    folder = path.parent
    for candidate in (folder.parent, folder, folder.parent.parent.parent):
        result = _json_file(candidate / "result.json")
        if "trial_name" in result or "verifier_result" in result:
            step = folder.parent.name if candidate not in (folder, folder.parent) else None
            return _trial(result, step, folder.parent)
    return Trial(rewards=_reward_file(folder.parent))


def _trial(result: Mapping[str, Any], step: str | None, folder: Path) -> Trial:
    name, own = as_text(result.get("trial_name")), as_text(result.get("id"))
    task = as_text(result.get("task_name"))
    checksum = as_text(result.get("task_checksum"))
    verified = field_at(result, "verifier_result.rewards")
    if step is not None:
        parts = (as_mapping(part, "a step") for part in result.get("step_results") or ())
        of_step = next((part for part in parts if part.get("step_name") == step), {})
        verified = field_at(of_step, "verifier_result.rewards")
    return Trial(
        result=result,
        id=_joined(name, own, step) if name else None,
        name=_joined(name, step) or None,
        task=_joined(_joined(task, checksum and checksum[:8], by="#"), step) or None,
        rewards=_rewards(verified) or _reward_file(folder),
    )


def _joined(*parts: str | None, by: str = ":") -> str:
    return by.join(part for part in parts if part)


def _rewards(value: object) -> dict[str, float]:
    return numbers_of(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}


def _json_file(path: Path) -> Mapping[str, Any]:
    try:
        value = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return {}
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _reward_file(folder: Path) -> dict[str, float]:
    """Return the reward that the verifier wrote, which a trial that was cut off may have."""
    rewards = _rewards(_json_file(folder / "verifier" / "reward.json"))
    try:
        text = (folder / "verifier" / "reward.txt").read_text(encoding="utf-8")
        return rewards or {"reward": float(text)}
    except (OSError, ValueError):
        return rewards


def part_of(path: Path) -> str | None:
    """Return what a file is that is no trajectory of its own; None if it is one."""
    if ".summarization-" in path.name:
        return "trajectory of a sub-agent"
    is_continued = _CONTINUATION.sub("", path.name) != path.name
    if is_continued and path.with_name(_CONTINUATION.sub("", path.name)).exists():
        return "continuation, which was read with its trajectory"
    return None


def continued_steps(root: Mapping[str, Any], path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the steps of the files that continue a trajectory after its context was compacted."""
    number, read = 1, {path.name}
    while (named := root.get("continued_trajectory_ref")) is not None:
        following = path.with_name(Path(str(named)).name)
        if not following.is_file():
            following = path.with_name(f"{path.stem}.cont-{number}{path.suffix}")
        if following.name in read:
            return
        read.add(following.name)
        root = _json_file(following)
        for step in as_list(root.get("steps") or [], "steps"):
            yield as_mapping(step, "a step")
        number += 1


def with_rollout_details(
    messages: list[Message], result: Mapping[str, Any]
) -> tuple[Sequence[Message], tuple[str, ...]]:
    """Return messages with the tokens that the trial's result has, if its steps have none.

    Returns:
        The messages, and notes for the report.
    """
    details = field_at(result, "agent_result.rollout_details.0")
    own = [n for n, message in enumerate(messages) if _is_answer(message)]
    has_tokens = any(messages[n].sampling.response_ids for n in own)
    if not isinstance(details, Mapping) or has_tokens:
        return messages, ()
    columns = [field_at(details, name) or [] for name in _COLUMNS]
    if any(len(column) != len(own) for column in columns):
        turns = len(columns[1])
        return messages, (
            f"rollout_details with {turns} turns for {len(own)} answers: imported without tokens",
        )
    for n, prompt, response, logprobs in zip(own, *columns, strict=True):
        sampling = LoggedSampling(
            prompt_ids=prompt, response_ids=response, response_logprobs=logprobs
        )
        messages[n] = replace(messages[n], sampling=sampling)
    return messages, ()


_COLUMNS = ("prompt_token_ids", "completion_token_ids", "logprobs")


def _is_answer(message: Message) -> bool:
    return message.role == ASSISTANT and not message.is_context


def is_result(value: object, path: Path) -> bool:
    """Return whether a record is the `result.json` of a trial or of a job."""
    if path.name != "result.json" or not isinstance(value, Mapping):
        return False
    names = cast("Mapping[str, Any]", value).keys()
    return {"trial_name", "task_name"} <= names or {"n_total_trials", "stats"} <= names


def read_result(record: Record) -> Iterator[LoggedRollout | Omission]:
    """Yield what is left out: a trial that has no trajectory in ATIF."""
    result = as_mapping(record.value, "a result")
    is_trial = "trial_name" in result
    if is_trial and not any(record.path.parent.rglob("*trajectory*.json")):
        failure = as_text(field_at(result, "exception_info.exception_type"))
        ended = f" that ended in {failure}," if failure is not None else ""
        yield Omission(reason=f"trial{ended} without a trajectory")
