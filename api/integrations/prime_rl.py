"""prime-rl and verifiers: the advantage of each turn, written into the nodes of the message graph.

Run with verifiers 0.4.0. prime-rl reads `MessageNode.advantages` since its rollouts are traces of
verifiers; its `Algorithm.score_group` is the place to call `score_group`.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from graphcredit.collector.importers.messages.rollout import Message, Turn
from graphcredit.integrations.step_credit import (
    Episode,
    StepCredit,
    message_of,
    states_and_actions,
)
from graphcredit.store.errors import InputError


class TraceNode(Protocol):
    """The part of verifiers' `MessageNode` that is read and written."""

    parent: int | None
    """Index of the message before; None for the first one."""
    message: Any
    sampled: bool
    """Whether the policy wrote it in this rollout."""
    mask: list[bool]
    """True for each token that the policy sampled."""
    advantages: list[float] | None
    """Credit of each sampled token."""


class TraceRollout(Protocol):
    """The part of verifiers' `Trace` that is read."""

    @property
    def id(self) -> str:
        """Its name, unique in the group."""
        ...

    @property
    def nodes(self) -> Sequence[Any]:
        """Its messages: `TraceNode`s."""
        ...

    @property
    def reward(self) -> float:
        """Its total reward."""
        ...


def score_group(
    rollouts: Sequence[TraceRollout], credit: StepCredit | None = None, *, task_id: str = "group"
) -> None:
    """Give every sampled token of a group the advantage of its turn.

    A turn is a message that the policy sampled; its state is made of the messages on the way to it
    since the turn before. Turns of other branches (compaction, subagents) are steps of the same
    trajectory, in the order of the nodes. The reward is that of the last turn.

    Example:
        class StepLevel(Algorithm):
            async def score_group(self, group):
                prime_rl.score_group(group, StepCredit(estimator="graphgpo"))

    Args:
        rollouts: The rollouts of one task by one policy.
        credit: How steps are credited.
        task_id: The task, for the recorder.

    Raises:
        InputError: A node's parent is no earlier node, or a message is none; or see `StepCredit`.
    """
    credit = credit or StepCredit()
    sampled = [[i for i, node in enumerate(r.nodes) if node.sampled] for r in rollouts]
    values = credit.of_episodes(
        Episode(
            task_id=task_id,
            trajectory_id=rollout.id,
            steps=states_and_actions(_turns(rollout, turns), credit.state),
            reward=rollout.reward,
        )
        for rollout, turns in zip(rollouts, sampled, strict=True)
    )
    for rollout, turns in zip(rollouts, sampled, strict=True):
        for index in turns:
            node: TraceNode = rollout.nodes[index]
            node.advantages = [next(values)] * sum(node.mask)


def _turns(rollout: TraceRollout, sampled: Sequence[int]) -> list[Turn]:
    messages = [
        message_of(node.message, f"message {number} of rollout {rollout.id}")
        for number, node in enumerate(rollout.nodes)
    ]
    return [Turn(seen=_seen(rollout, messages, i), message=messages[i]) for i in sampled]


def _seen(rollout: TraceRollout, messages: Sequence[Message], index: int) -> tuple[Message, ...]:
    """Return the messages on the way to a node since the last one that the policy sampled."""
    seen: list[Message] = []
    before, at = index, rollout.nodes[index].parent
    while at is not None:
        if not 0 <= at < before:
            raise InputError(
                f"the parent of node {before} of rollout {rollout.id} must be an earlier node: got "
                f"{at}"
            )
        if rollout.nodes[at].sampled:
            break
        seen.append(messages[at])
        before, at = at, rollout.nodes[at].parent
    return tuple(reversed(seen))
