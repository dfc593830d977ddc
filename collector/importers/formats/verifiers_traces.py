"""verifiers v1 and prime-rl: `traces.jsonl`, one episode a line, with the tokens of every message.

A trace is a tree of messages: `parent` is the index of the message before. Steps are the sampled
messages on the way to the last one; other branches (compaction, retries) are left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from graphcredit.collector.importers.logs.chat import chat_message
from graphcredit.collector.importers.logs.messages import (
    EVALUATED,
    LoggedRollout,
    LoggedSampling,
    Message,
    Omission,
    run_of_evaluation,
)
from graphcredit.collector.importers.logs.records import Record
from graphcredit.collector.importers.logs.values import (
    RecordError,
    as_list,
    as_mapping,
    as_number,
    as_text,
    field_at,
    first_of,
    is_limit,
    short,
    version_of,
)


def is_row(value: object, path: Path) -> bool:
    """Return whether a record is an episode: traces that are trees of messages."""
    if not isinstance(value, Mapping):
        return False
    traces = cast("Mapping[str, Any]", value).get("traces")
    return isinstance(traces, list) and "env" in value and "task" in value


def read(record: Record) -> Iterator[LoggedRollout | Omission]:
    """Yield a rollout for each trained agent of an episode."""
    episode = as_mapping(record.value, "an episode")
    traces = [as_mapping(trace, "a trace") for trace in as_list(episode["traces"], "traces")]
    if not traces:
        yield Omission(reason="episode without a trace (it ended in an error)")
    trained = [t for t in traces if field_at(t, "agent.trainable") is not False]
    if len(trained) < len(traces) and trained:
        yield Omission(
            reason="trace of an agent that is not trained", count=len(traces) - len(trained)
        )
    kept = trained or traces
    has_roles = len({as_text(field_at(t, "agent.name")) for t in kept}) > 1
    for trace in kept:
        if trace.get("errors") or trace.get("ok") is False:
            yield Omission(reason="trace with an error")
        else:
            yield _rollout(episode, trace, has_roles=has_roles)


def _rollout(
    episode: Mapping[str, Any], trace: Mapping[str, Any], *, has_roles: bool
) -> LoggedRollout:
    nodes = [as_mapping(node, "a node") for node in as_list(trace.get("nodes"), "nodes")]
    path = _path_to_last(nodes)
    task = as_text(first_of(as_mapping(episode.get("task") or {}, "task"), ("key", "hash")))
    group = as_text(field_at(episode, "group.id"))
    role = f"/{field_at(trace, 'agent.name')}" if has_roles else ""
    rewards, total = _rewards(trace)
    num_sampled = sum(node.get("sampled") is True for node in nodes)
    num_kept = sum(nodes[index].get("sampled") is True for index in path)
    is_branched = num_sampled > num_kept
    return LoggedRollout(
        messages=_messages(episode, trace, nodes, path),
        record={**episode, "traces": [trace], "trace": trace},
        trajectory_id=as_text(trace.get("id")),
        group=f"{group}{role}" if group is not None else None,
        task=f"{task}{role}" if task is not None else None,
        run=_run(episode),
        iteration=_step(episode),
        reward=total,
        rewards=rewards,
        truncated=trace.get("is_timeout") is True or is_limit(trace.get("stop_condition")),
        info=_info(episode, trace),
        notes=(EVALUATED,) if field_at(episode, "run.work.type") == "eval" else (),
        left_out={"sampled message of another branch": num_sampled - num_kept}
        if is_branched
        else {},
    )


def _run(episode: Mapping[str, Any]) -> str | None:
    run = as_text(field_at(episode, "run.id"))
    return run_of_evaluation(run) if field_at(episode, "run.work.type") == "eval" else run


def _step(episode: Mapping[str, Any]) -> int | None:
    step = field_at(episode, "run.work.step")
    return step if isinstance(step, int) else None


def _path_to_last(nodes: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the indices of the messages from the root to the last sampled one, and what follows.

    Raises:
        RecordError: A parent is not an earlier message.
    """
    sampled = [index for index, node in enumerate(nodes) if node.get("sampled") is True]
    if not sampled:
        return list(range(len(nodes)))
    path: list[int] = []
    index: object = _last_descendant(nodes, sampled[-1])
    before = len(nodes)
    while index is not None:
        if not isinstance(index, int) or not 0 <= index < before:
            raise RecordError(f"a node's parent must be an earlier node: got {short(index)}")
        path.append(index)
        before, index = index, nodes[index].get("parent")
    return path[::-1]


def _last_descendant(nodes: Sequence[Mapping[str, Any]], start: int) -> int:
    """Return the end of the chain of results that follow a message."""
    last = start
    for index in range(start + 1, len(nodes)):
        if nodes[index].get("parent") == last:
            last = index
    return last


def _messages(
    episode: Mapping[str, Any],
    trace: Mapping[str, Any],
    nodes: Sequence[Mapping[str, Any]],
    path: Sequence[int],
) -> tuple[Message, ...]:
    turn_rewards = field_at(trace, "info.turn_rewards")
    rewards = list(as_list(turn_rewards, "info.turn_rewards")) if turn_rewards is not None else []
    calls = {call.get("node"): call for call in trace.get("calls") or ()}
    order = [i for i, node in enumerate(nodes) if node.get("sampled") is True]
    before: list[int] = []
    messages: list[Message] = []
    for index in path:
        node = nodes[index]
        is_sampled = node.get("sampled") is True
        message = chat_message(
            node.get("message"), f"nodes[{index}].message", is_context=not is_sampled
        )
        if is_sampled:
            number = order.index(index)
            message = Message(
                role="assistant",
                text=message.text,
                thought=message.thought,
                tool_calls=message.tool_calls,
                image_parts=message.image_parts,
                source=message.source,
                reward=as_number(rewards[number], "a turn's reward")
                if number < len(rewards)
                else None,
                sampling=_sampling(episode, node, calls.get(index), before),
            )
        before += as_list(node.get("token_ids") or [], f"nodes[{index}].token_ids")
        messages.append(message)
    return tuple(messages)


def _sampling(
    episode: Mapping[str, Any],
    node: Mapping[str, Any],
    call: Mapping[str, Any] | None,
    before: Sequence[int],
) -> LoggedSampling:
    prompt, response, logprobs = _tokens(node, before)
    settings = call.get("sampling") if call is not None else None
    settings = as_mapping(settings, "sampling") if settings is not None else {}
    top_k = settings.get("top_k")
    return LoggedSampling(
        prompt_ids=prompt,
        response_ids=response,
        response_logprobs=logprobs,
        temperature=as_number(settings.get("temperature"), "temperature"),
        top_p=as_number(settings.get("top_p"), "top_p"),
        top_k=top_k if isinstance(top_k, int) and top_k > 0 else None,
        policy_version=version_of(
            field_at(episode, "run.work.policy.start"), field_at(episode, "run.work.policy.end")
        ),
    )


def _tokens(
    node: Mapping[str, Any], before: Sequence[int]
) -> tuple[list[int] | None, list[int] | None, list[float] | None]:
    """Return the prompt, what was sampled, and its log-probabilities; None without tokens.

    `mask` tells the sampled tokens. Tokens of the template before them belong to the prompt, those
    after them to the next one; sampled tokens with others between are no answer to one prompt.
    """
    ids, mask = node.get("token_ids"), node.get("mask")
    if not ids or not mask or not any(mask):
        return None, None, None
    if len(ids) != len(mask):
        raise RecordError(f"mask must have one value a token: {len(mask)} for {len(ids)} tokens")
    first = mask.index(True)
    num_sampled = sum(map(bool, mask))
    if not all(mask[first : first + num_sampled]):
        return None, None, None
    logprobs = node.get("logprobs")
    if logprobs and len(logprobs) != num_sampled:
        raise RecordError(
            f"logprobs must have one value a sampled token: {len(logprobs)} for {num_sampled}"
        )
    response = list(ids[first : first + num_sampled])
    return [*before, *ids[:first]], response, list(logprobs) if logprobs else None


def _rewards(trace: Mapping[str, Any]) -> tuple[dict[str, float], float | None]:
    """Return the scores by name, and the sum of score times weight."""
    named: dict[str, float] = {}
    total: float | None = None
    for name, value in as_mapping(trace.get("rewards") or {}, "rewards").items():
        if value is None:
            continue
        reward = as_mapping(value, f"rewards.{name}")
        score = as_number(reward.get("score"), f"rewards.{name}.score")
        if score is not None:
            weight = as_number(reward.get("weight"), f"rewards.{name}.weight")
            named[name] = score
            total = (total or 0.0) + score * (1.0 if weight is None else weight)
    return named, total


def _info(episode: Mapping[str, Any], trace: Mapping[str, Any]) -> dict[str, Any]:
    names = ("rewards", "metrics", "info", "stop_condition", "agent", "timing")
    own = {name: trace[name] for name in names if trace.get(name) is not None}
    of_episode = {name: episode[name] for name in ("env", "run") if episode.get(name) is not None}
    return {**own, **of_episode, "episode": episode.get("id")}
