"""A job of Harbor around ATIF trajectories: task, rewards, early ends, tokens, and parts of files.

`{trial}/result.json` describes the trial of `{trial}/agent/trajectory.json`; a task in several
steps has `{trial}/steps/{step}/agent/trajectory.json`, and rewards for each step.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.logs.files import Record, json_file
from graphcredit.collector.importers.messages.rollout import (
    LoggedRollout,
    LoggedSampling,
    Message,
    Omission,
    Rollouts,
)
from graphcredit.collector.importers.messages.values import (
    as_mapping,
    as_objects,
    as_text,
    field_at,
    fields_of,
    joined,
    numbers_of,
)
from graphcredit.store.files.regular import read_regular

_CONTINUATION = re.compile(r"[.-]cont-(\d+)(?=\.json)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """What a job says of a trajectory; empty if it is in no job."""

    result: Mapping[str, Any] = field(default_factory=dict[str, Any])
    id: str | None = None
    name: str | None = None
    task: str | None = None
    rewards: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def reward(self) -> float | None:
        """The reward called `reward`, or the only one; several have no agreed total."""
        only = next(iter(self.rewards.values())) if len(self.rewards) == 1 else None
        return self.rewards.get("reward", only)


def trial_of(path: Path) -> Trial:
    """Return the trial of a trajectory."""
    folder = path.parent
    for candidate in (folder.parent, folder, folder.parent.parent.parent):
        result = json_file(candidate / "result.json")
        if "trial_name" in result or "verifier_result" in result:
            step = folder.parent.name if candidate not in (folder, folder.parent) else None
            return _trial(result, step, folder.parent)
    return Trial(rewards=_reward_file(folder.parent))


def _trial(result: Mapping[str, Any], step: str | None, folder: Path) -> Trial:
    name, checksum = as_text(result.get("trial_name")), as_text(result.get("task_checksum"))
    judged = result
    if step is not None:
        parts = [as_mapping(part, "a step") for part in result.get("step_results") or ()]
        judged = next((part for part in parts if part.get("step_name") == step), {})
    task = joined(result.get("task_name"), checksum and checksum[:8], by="#")
    return Trial(
        result=result,
        id=joined(name, result.get("id"), step) if name else None,
        name=joined(name, step) or None,
        task=joined(task, step) or None,
        rewards=numbers_of(field_at(judged, "verifier_result.rewards")) or _reward_file(folder),
    )


def _reward_file(folder: Path) -> dict[str, float]:
    """Return the reward that the verifier wrote, which a trial that was cut off may have."""
    rewards = numbers_of(json_file(folder / "verifier" / "reward.json"))
    try:
        return rewards or {"reward": float(read_regular(folder / "verifier" / "reward.txt"))}
    except (OSError, ValueError):
        return rewards


def part_of(path: Path) -> str | None:
    """Return what a file is that is no trajectory of its own; None if it is one."""
    if ".summarization-" in path.name:
        return "rollout of a sub-agent"
    continued = path.with_name(_CONTINUATION.sub("", path.name))
    if continued != path and continued.exists():
        return "continuation, which was read with its rollout"
    return None


def is_native(path: Path, root: Path) -> bool:
    """Return whether a file is the own log of an agent, whose ATIF trajectory is in `root`, too."""
    folder = _agent_folder(path, root)
    each = path if folder is None else folder / "trajectory.json"
    return path != each and "schema_version" in json_file(each)


def in_trial(rollout: LoggedRollout, path: Path, root: Path) -> LoggedRollout:
    """Return a rollout of an agent's own log with what its trial says of it."""
    folder = _agent_folder(path, root)
    trial = Trial() if folder is None else trial_of(folder / path.name)
    if trial.task is None or rollout.trajectory_id == trial.id:
        return rollout
    return replace(
        rollout,
        label=trial.name or rollout.label,
        task=trial.task,
        group=None,
        reward=trial.reward,
        rewards=trial.rewards,
    )


def _agent_folder(path: Path, root: Path) -> Path | None:
    """Return the folder `agent` of a trial that a file is in."""
    if "agent" not in path.parts:
        return None
    folders = (folder for folder in path.parents if folder.is_relative_to(root))
    return next((folder for folder in folders if folder.name == "agent"), None)


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
        root = json_file(following)
        yield from as_objects(root.get("steps"), "steps", "a step")
        number += 1


def with_rollout_details(
    messages: list[Message], result: Mapping[str, Any]
) -> tuple[Sequence[Message], tuple[str, ...]]:
    """Return messages with the tokens that the trial's result has, if its steps have none.

    Returns:
        The messages, and notes for the report.
    """
    details = field_at(result, "agent_result.rollout_details.0")
    answers = [n for n, message in enumerate(messages) if message.is_answer]
    has_tokens = any(messages[n].sampling.response_ids for n in answers)
    if not isinstance(details, Mapping) or has_tokens:
        return messages, ()
    names = ("prompt_token_ids", "completion_token_ids", "logprobs")
    columns = [field_at(details, name) or [] for name in names]
    if any(len(column) != len(answers) for column in columns):
        return messages, (
            f"rollout_details with {len(columns[1])} turns for {len(answers)} answers: imported "
            "without tokens",
        )
    for n, prompt, response, logprobs in zip(answers, *columns, strict=True):
        sampling = LoggedSampling(
            prompt_ids=prompt, response_ids=response, response_logprobs=logprobs
        )
        messages[n] = replace(messages[n], sampling=sampling)
    return messages, ()


def is_result(value: object, path: Path) -> bool:
    """Return whether a record is the `result.json` of a trial or of a job."""
    names = fields_of(value).keys()
    is_known = {"trial_name", "task_name"} <= names or {"n_total_trials", "stats"} <= names
    return is_known and path.name == "result.json"


def read_result(record: Record) -> Rollouts:
    """Yield what is left out: a trial that has no trajectory in ATIF."""
    result = as_mapping(record.value, "a result")
    logs = (record.path.parent.rglob(name) for name in ("*trajectory*.json", "*.jsonl"))
    if "trial_name" in result and not any(map(any, logs)):
        failure = as_text(field_at(result, "exception_info.exception_type"))
        ended = f" that ended in {failure}," if failure is not None else ""
        yield Omission(reason=f"trial{ended} without a rollout")
