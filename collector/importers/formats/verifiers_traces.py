"""verifiers v1 and prime-rl: `traces.jsonl`, one episode a line, with the tokens of every message.

A trace is a tree of messages: `parent` is the index of the message before. Steps are the sampled
messages on the way to the last one; other branches (compaction, retries) are left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.chat import chat_message
from graphcredit.collector.importers.messages.rollout import (
    ASSISTANT,
    EVALUATED,
    LoggedRollout,
    LoggedSampling,
    Message,
    Omission,
    Rollouts,
    run_of_evaluation,
)
from graphcredit.collector.importers.messages.values import (
    RecordError,
    as_integer,
    as_list,
    as_mapping,
    as_number,
    as_text,
    field_at,
    fields_of,
    first_of,
    is_limit,
    short,
    version_of,
)


def is_row(value: object, path: Path) -> bool:
    """Return whether a record is an episode: traces that are trees of messages."""
    episode = fields_of(value)
    return {"env", "task"} <= episode.keys() and isinstance(episode.get("traces"), list)


def read(record: Record) -> Rollouts:
    """Yield a rollout for each trained agent of an episode."""
    episode = as_mapping(record.value, "an episode")
    traces = [as_mapping(trace, "a trace") for trace in as_list(episode["traces"], "traces")]
    if not traces:
        yield Omission(reason="episode without a trace (it ended in an error)")
    trained = [t for t in traces if field_at(t, "agent.trainable") is not False]
    if trained and (others := len(traces) - len(trained)):
        yield Omission(reason="trace of an agent that is not trained", count=others)
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
    sampled = [index for index, node in enumerate(nodes) if node.get("sampled") is True]
    path = _path_to_last(nodes, sampled)
    task = as_text(first_of(as_mapping(episode.get("task") or {}, "task"), ("key", "hash")))
    group = as_text(field_at(episode, "group.id"))
    role = f"/{field_at(trace, 'agent.name')}" if has_roles else ""
    rewards, total = _rewards(trace)
    run = as_text(field_at(episode, "run.id"))
    is_evaluation = field_at(episode, "run.work.type") == "eval"
    places = tuple(sampled.index(index) for index in path if index in sampled)
    others = len(sampled) - len(places)
    info = {name: trace[name] for name in _OF_TRACE if trace.get(name) is not None}
    info |= {name: episode[name] for name in ("env", "run") if episode.get(name) is not None}
    return LoggedRollout(
        messages=_messages(episode, trace, nodes, path, sampled),
        record={**episode, "traces": [trace], "trace": trace},
        trajectory_id=as_text(trace.get("id")),
        group=f"{group}{role}" if group is not None else None,
        task=f"{task}{role}" if task is not None else None,
        run=run_of_evaluation(run) if is_evaluation else run,
        iteration=as_integer(field_at(episode, "run.work.step")),
        reward=total,
        rewards=rewards,
        truncated=trace.get("is_timeout") is True or is_limit(trace.get("stop_condition")),
        info={**info, "episode": episode.get("id")},
        notes=(EVALUATED,) if is_evaluation else (),
        places=places,
        num_answers=len(sampled),
        left_out={"sampled message of another branch": others} if others else {},
    )


_OF_TRACE = ("rewards", "metrics", "info", "stop_condition", "agent", "timing")


def _path_to_last(nodes: Sequence[Mapping[str, Any]], sampled: Sequence[int]) -> list[int]:
    """Return the indices of messages from the root to the last sampled one, and what follows."""
    if not sampled:
        return list(range(len(nodes)))
    last = sampled[-1]
    for index in range(last + 1, len(nodes)):  # the results that follow it
        last = index if nodes[index].get("parent") == last else last
    path: list[int] = []
    index: object = last
    before = len(nodes)
    while index is not None:
        if not isinstance(index, int) or not 0 <= index < before:
            raise RecordError(f"a node's parent must be an earlier node: got {short(index)}")
        path.append(index)
        before, index = index, nodes[index].get("parent")
    return path[::-1]


def _messages(
    episode: Mapping[str, Any],
    trace: Mapping[str, Any],
    nodes: Sequence[Mapping[str, Any]],
    path: Sequence[int],
    sampled: Sequence[int],
) -> tuple[Message, ...]:
    turn_rewards = field_at(trace, "info.turn_rewards")
    rewards = [] if turn_rewards is None else as_list(turn_rewards, "info.turn_rewards")
    calls = {call.get("node"): call for call in trace.get("calls") or ()}
    before: list[int] = []
    messages: list[Message] = []
    for index in path:
        node, what = nodes[index], f"nodes[{index}]"
        is_sampled = node.get("sampled") is True
        message = chat_message(node.get("message"), f"{what}.message", is_context=not is_sampled)
        if is_sampled:
            number = sampled.index(index)
            reward = rewards[number] if number < len(rewards) else None
            message = replace(
                message,
                role=ASSISTANT,
                reward=as_number(reward, "a turn's reward"),
                sampling=_sampling(episode, node, calls.get(index), before),
            )
        before += as_list(node.get("token_ids") or [], f"{what}.token_ids")
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
    settings = as_mapping({} if settings is None else settings, "sampling")
    top_k = as_integer(settings.get("top_k"))
    return LoggedSampling(
        prompt_ids=prompt,
        response_ids=response,
        response_logprobs=logprobs,
        temperature=as_number(settings.get("temperature"), "temperature"),
        top_p=as_number(settings.get("top_p"), "top_p"),
        top_k=top_k if top_k and top_k > 0 else None,
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
