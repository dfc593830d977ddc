"""ATIF trajectories (1.0 to 1.8); `harbor` has what a job of Harbor says of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.formats.harbor import (
    continued_steps,
    part_of,
    trial_of,
    with_rollout_details,
)
from graphcredit.collector.importers.formats.sessions.lines import sorted_out
from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.answers import joined_answer
from graphcredit.collector.importers.messages.chat import seen
from graphcredit.collector.importers.messages.parts import text_of_content
from graphcredit.collector.importers.messages.rollout import (
    ASSISTANT,
    SYSTEM,
    TOOL,
    USER,
    LoggedRollout,
    LoggedSampling,
    Message,
    Omission,
    Rollouts,
)
from graphcredit.collector.importers.messages.shapes import tool_call
from graphcredit.collector.importers.messages.values import (
    RecordError,
    as_list,
    as_mapping,
    as_objects,
    as_text,
    field_at,
    fields_of,
    first_of,
    items_of,
    short,
    without,
)

_ROLES = {"system": SYSTEM, "user": USER, "agent": ASSISTANT}
_OF_TRIAL = ("trial_name", "task_name", "verifier_result", "exception_info")
_OF_ROOT = ("schema_version", "agent", "notes", "final_metrics")

ASIDE = (
    *("left_out", "schema_version", "agent", "notes", "final_metrics", "extra"),
    *(f"steps.*.{name}" for name in ("source", "extra", "metrics", "reasoning_effort")),
    *("steps.*.observation.results.*.extra", "steps.*.tool_calls.*.extra", "result"),
    *("subagent_trajectories", "continued_trajectory_ref"),
    "steps.*.observation.results.*.subagent_trajectory_ref",
)
"""What describes the run, and trajectories of sub-agents."""


def is_row(value: object, path: Path) -> bool:
    """Return whether a record is an ATIF trajectory."""
    version = fields_of(value).get("schema_version")
    return isinstance(version, str) and version.startswith("ATIF-v1.")


def gather(records: Iterator[Record], limit: int) -> Iterator[Record]:
    """Yield the records with the steps apart that are left out: side-chains and copies."""
    for record in records:
        steps = fields_of(record.value).get("steps")
        if isinstance(steps, list):
            record = replace(record, value={**record.value, **_sorted_out(items_of(steps))})
        yield record


def read(record: Record) -> Rollouts:
    """Yield the rollout of a trajectory; sub-agents and copied steps are left out."""
    root = as_mapping(record.value, "a rollout")
    trial = trial_of(record.path)
    reason = part_of(record.path)
    if reason is not None:
        yield Omission(reason=reason)
        return
    kept = [as_mapping(step, "a step") for step in as_list(root.get("steps"), "steps")]
    more = _sorted_out(continued_steps(root, record.path))
    for part in (root, more):
        for name, steps in fields_of(part.get("left_out")).items():
            yield Omission(reason=name, count=len(steps))
    subagents = root.get("subagent_trajectories") or ()
    if subagents:
        yield Omission(reason="rollout of a sub-agent", count=len(subagents))
    failure = as_text(field_at(trial.result, "exception_info.exception_type"))
    is_timeout = failure is not None and "timeout" in failure.lower()
    if failure is not None and not is_timeout and not trial.rewards:
        yield Omission(reason=f"trial that ended in {failure}, without a reward")
        return
    messages, notes = with_rollout_details(list(_messages([*kept, *more["steps"]])), trial.result)
    described = ((trial.result, _OF_TRIAL), (root, _OF_ROOT))
    yield LoggedRollout(
        messages=tuple(messages),
        record={**without(root, ("left_out",)), "result": trial.result},
        trajectory_id=trial.id,
        label=trial.name or as_text(first_of(root, ("trajectory_id", "session_id"))) or "",
        task=trial.task,
        reward=trial.reward,
        rewards=trial.rewards,
        truncated=is_timeout,
        info={n: x[n] for x, names in described for n in names if x.get(n) is not None},
        notes=notes,
    )


def _why_left_out(step: Mapping[str, Any]) -> str | None:
    if step.get("is_copied_context") is True:
        return "step that repeats copied context"
    if field_at(step, "extra.is_sidechain") is True or step.get("is_sidechain") is True:
        return "step of a side-chain (a sub-agent)"
    return None


def _sorted_out(steps: Iterable[object]) -> dict[str, Any]:
    """Return the steps of the conversation, and the others by the reason to leave them out."""
    objects = [fields_of(step) for step in steps]
    return sorted_out(objects, map(_why_left_out, objects), "steps")


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
        # Of the agent's steps, those that no model was called for.
        yield seen(_role(step), step.get("message"), step, is_context=True)
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
    usage = fields_of(step.get("metrics"))
    counted = usage.get("prompt_tokens"), usage.get("completion_tokens")
    is_repeated = None not in counted and usage == before.get("metrics")
    return _role(step) == ASSISTANT and is_repeated


def _of_agent(steps: Sequence[Mapping[str, Any]]) -> Iterator[Message]:
    message = joined_answer(*map(_answer, steps))
    if len(steps) > 1:
        message = replace(message, source={"parts": [dict(step) for step in steps]})
    yield message
    for step in steps:
        yield from _results(step)


def _answer(step: Mapping[str, Any]) -> Message:
    metrics = fields_of(step.get("metrics"))
    ids = metrics.get("completion_token_ids")
    return seen(
        ASSISTANT,
        step.get("message"),
        step,
        thought=text_of_content(step.get("reasoning_content")),
        tool_calls=tuple(tool_call(call, "tool_calls") for call in step.get("tool_calls") or ()),
        sampling=LoggedSampling(
            prompt_ids=metrics.get("prompt_token_ids") if ids else None,
            response_ids=ids,
            response_logprobs=metrics.get("logprobs") if ids else None,
        ),
    )


def _results(step: Mapping[str, Any]) -> Iterator[Message]:
    results = fields_of(step.get("observation")).get("results")
    for result in as_objects(results, "observation.results", "a result"):
        yield seen(TOOL, result.get("content"), result)
