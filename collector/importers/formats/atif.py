"""ATIF trajectories (1.0 to 1.8); `harbor` has what a job of Harbor says of them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from graphcredit.collector.importers.formats.harbor import (
    continued_steps,
    part_of,
    trial_of,
    with_rollout_details,
)
from graphcredit.collector.importers.logs.chat import tool_call
from graphcredit.collector.importers.logs.image_parts import images_of
from graphcredit.collector.importers.logs.messages import (
    ASSISTANT,
    SYSTEM,
    TOOL,
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
    as_text,
    field_at,
    first_of,
    short,
    text_of_content,
)

_ROLES = {"system": SYSTEM, "user": USER, "agent": ASSISTANT}


def is_row(value: object, path: Path) -> bool:
    """Return whether a record is an ATIF trajectory."""
    if not isinstance(value, Mapping):
        return False
    version = cast("Mapping[str, Any]", value).get("schema_version")
    return isinstance(version, str) and version.startswith("ATIF-v1.")


def read(record: Record) -> Iterator[LoggedRollout | Omission]:
    """Yield the rollout of a trajectory; sub-agents and copied steps are left out."""
    root = as_mapping(record.value, "a trajectory")
    trial = trial_of(record.path)
    part = part_of(record.path)
    if part is not None:
        yield Omission(reason=part)
        return
    steps = [as_mapping(step, "a step") for step in as_list(root.get("steps"), "steps")]
    steps += continued_steps(root, record.path)
    own = [step for step in steps if _why_left_out(step) is None]
    yield from _left_out(root, steps)
    result = trial.result
    failure = as_text(field_at(result, "exception_info.exception_type"))
    is_timeout = failure is not None and "timeout" in failure.lower()
    if failure is not None and not is_timeout and not trial.rewards:
        yield Omission(reason=f"trial that ended in {failure}, without a reward")
        return
    messages, notes = with_rollout_details(list(_messages(own)), result)
    session = as_text(first_of(root, ("trajectory_id", "session_id")))
    yield LoggedRollout(
        messages=tuple(messages),
        record={**root, "result": result},
        trajectory_id=trial.id,
        label=trial.name or session or "",
        task=trial.task,
        reward=_total(trial.rewards),
        rewards=trial.rewards,
        truncated=is_timeout,
        info=_info(root, result),
        notes=notes,
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _total(rewards: Mapping[str, float]) -> float | None:
    """Return the reward called `reward`, or the only one; several have no agreed total."""
    if "reward" in rewards:
        return rewards["reward"]
    return next(iter(rewards.values())) if len(rewards) == 1 else None


def _why_left_out(step: Mapping[str, Any]) -> str | None:
    if step.get("is_copied_context") is True:
        return "step that repeats copied context"
    if field_at(step, "extra.is_sidechain") is True or step.get("is_sidechain") is True:
        return "step of a side-chain (a sub-agent)"
    return None


def _left_out(root: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> Iterator[Omission]:
    reasons = [reason for step in steps if (reason := _why_left_out(step)) is not None]
    for reason in dict.fromkeys(reasons):
        yield Omission(reason=reason, count=reasons.count(reason))
    subagents = root.get("subagent_trajectories") or ()
    if subagents:
        yield Omission(reason="trajectory of a sub-agent", count=len(subagents))


def _messages(steps: Sequence[Mapping[str, Any]]) -> Iterator[Message]:
    """Yield the messages; steps that log one answer of the model in parts become one message."""
    pending: list[Mapping[str, Any]] = []
    for step in steps:
        if pending and not _is_same_answer(pending[-1], step):
            yield from _of_agent(pending)
            pending = []
        if _role(step) == ASSISTANT and step.get("llm_call_count") != 0:
            pending.append(step)
            continue
        yield Message(
            role=_role(step),
            text=text_of_content(step.get("message")),
            is_context=True,  # of the agent's steps, those that no model was called for
            image_parts=images_of(step.get("message")),
            source=dict(step),
        )
        yield from _results(step)
    if pending:
        yield from _of_agent(pending)


def _role(step: Mapping[str, Any]) -> str:
    role = _ROLES.get(str(step.get("source")))
    if role is None:
        raise RecordError(
            f"a step's source must be system, user or agent: got {short(step.get('source'))}"
        )
    return role


def _is_same_answer(before: Mapping[str, Any], step: Mapping[str, Any]) -> bool:
    """Return whether two agent steps are parts of one answer: they repeat the same usage."""
    if _role(step) != ASSISTANT:
        return False
    usage = _mapping(step.get("metrics"))
    counted = first_of(usage, ("prompt_tokens",)), first_of(usage, ("completion_tokens",))
    return None not in counted and usage == before.get("metrics")


def _of_agent(parts: Sequence[Mapping[str, Any]]) -> Iterator[Message]:
    calls = [
        tool_call(call, "tool_calls") for part in parts for call in part.get("tool_calls") or ()
    ]
    texts = [text_of_content(part.get("message")) for part in parts]
    thoughts = [text_of_content(part.get("reasoning_content")) for part in parts]
    yield Message(
        role=ASSISTANT,
        text="\n\n".join(text for text in texts if text),
        thought="\n\n".join(text for text in thoughts if text),
        tool_calls=tuple(calls),
        sampling=_sampling(parts),
        image_parts=tuple(image for part in parts for image in images_of(part.get("message"))),
        source=dict(parts[0]) if len(parts) == 1 else {"parts": [dict(part) for part in parts]},
    )
    for part in parts:
        yield from _results(part)


def _results(step: Mapping[str, Any]) -> Iterator[Message]:
    observation = _mapping(step.get("observation"))
    for result in as_list(observation.get("results") or [], "observation.results"):
        source = dict(as_mapping(result, "a result"))
        content = source.get("content")
        yield Message(
            role=TOOL,
            text=text_of_content(content),
            image_parts=images_of(content),
            source=source,
        )


def _sampling(parts: Sequence[Mapping[str, Any]]) -> LoggedSampling:
    metrics = _mapping(parts[0].get("metrics"))
    ids = metrics.get("completion_token_ids")
    return LoggedSampling(
        prompt_ids=metrics.get("prompt_token_ids") if ids else None,
        response_ids=ids,
        response_logprobs=metrics.get("logprobs") if ids else None,
    )


def _info(root: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
    names = ("trial_name", "task_name", "verifier_result", "exception_info")
    of_trial = {name: result[name] for name in names if result.get(name) is not None}
    own = ("schema_version", "agent", "notes", "final_metrics")
    of_root = {name: root[name] for name in own if root.get(name) is not None}
    return {**of_trial, **of_root}
