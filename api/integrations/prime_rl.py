"""prime-rl: an algorithm that credits each turn of the group's episodes.

One of its algorithms is replaced where they are listed:

    ALGORITHM_CLASSES["grpo"] = prime_rl.with_credit(GRPOAlgorithm)
"""

from collections.abc import Sequence
from typing import Any

from graphcredit.collector.importers.messages.rollout import Message, Turn
from graphcredit.integrations.message_episodes import Chat, message_of, turn_advantages
from graphcredit.integrations.step_credit import StepCredit
from graphcredit.store.errors import InputError


def with_credit(algorithm: Any, credit: StepCredit | None = None) -> Any:
    """Return a subclass of an `Algorithm` of prime-rl that credits groups by `score_group`."""

    class Credited(algorithm):
        async def score_group(self, episodes: Sequence[Any]) -> None:
            score_group(episodes, credit)

    return Credited


def score_group(episodes: Sequence[Any], credit: StepCredit | None = None) -> None:
    """Give every sampled token of a group's `Episode`s of verifiers the advantage of its turn.

    The trainable traces of one agent that had no error are compared with each other. A turn is a
    message that the policy sampled; its state is made of the messages on the way to it since the
    turn before. Turns of other branches are steps of the same trajectory.
    """
    traces = [
        (episode, trace)
        for episode in episodes
        for trace in episode.traces
        if trace.agent.trainable and not trace.has_error and any(any(n.mask) for n in trace.nodes)
    ]
    turns = [[i for i, node in enumerate(trace.nodes) if node.sampled] for _, trace in traces]
    values = turn_advantages(
        (
            Chat(
                task_id=f"{episode.group.id if episode.group else 'group'}:{trace.agent.name}",
                trajectory_id=trace.id,
                turns=_turns(trace, of_trace),
                reward=trace.reward,
            )
            for (episode, trace), of_trace in zip(traces, turns, strict=True)
        ),
        credit,
    )
    for (_, trace), of_trace, of_turns in zip(traces, turns, values, strict=True):
        for index, value in zip(of_trace, of_turns, strict=True):
            node = trace.nodes[index]
            node.advantages = [value] * sum(node.mask)


def _turns(trace: Any, sampled: Sequence[int]) -> list[Turn]:
    messages = [
        message_of(node.message, f"message {number} of trace {trace.id}")
        for number, node in enumerate(trace.nodes)
    ]
    return [Turn(seen=_seen(trace, messages, i), message=messages[i]) for i in sampled]


def _seen(trace: Any, messages: Sequence[Message], index: int) -> tuple[Message, ...]:
    """Return the messages on the way to a node since the last one that the policy sampled."""
    seen: list[Message] = []
    before, at = index, trace.nodes[index].parent
    while at is not None:
        if not 0 <= at < before:
            raise InputError(
                f"the parent of node {before} of trace {trace.id} must be an earlier node: got {at}"
            )
        if trace.nodes[at].sampled:
            break
        seen.append(messages[at])
        before, at = at, trace.nodes[at].parent
    return tuple(reversed(seen))
