"""TRL's AsyncGRPOTrainer: the advantage of each sample that a rollout worker puts on the queue.

Run with TRL 1.16.0. A sample has one advantage, so a worker makes one sample of each step.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from graphcredit.collector.importers.messages.rollout import Turn
from graphcredit.integrations.step_credit import (
    Episode,
    StepCredit,
    message_of,
    states_and_actions,
)
from graphcredit.store.errors import InputError


class TrlSample(Protocol):
    """The part of TRL's `RolloutSample` that is read and written."""

    prompt: Any
    """Messages that the policy was given."""
    completion: Any
    """The message that it sampled."""
    group_id: int
    """The group: rollouts of one prompt."""
    advantage: float


def set_advantages(
    episodes: Sequence[Sequence[TrlSample]],
    rewards: Sequence[float],
    credit: StepCredit | None = None,
) -> None:
    """Give each sample the advantage of its step.

    Call it in a rollout worker, before it puts the samples of whole groups on its queue.

    Args:
        episodes: The samples of each episode in order, one a step.
        rewards: The total reward of each episode.
        credit: How steps are credited.

    Raises:
        InputError: There is not one reward for each episode, or a sample has no message; or see
            `StepCredit`.
    """
    credit = credit or StepCredit()
    if len(episodes) != len(rewards):
        raise InputError(
            f"each episode must have a reward: got {len(episodes)} episodes, {len(rewards)} rewards"
        )
    turns = [
        [_turn(sample, f"sample {i} of episode {number}") for i, sample in enumerate(episode)]
        for number, episode in enumerate(episodes)
    ]
    values = credit.of_episodes(
        Episode(
            task_id=str(episode[0].group_id),
            trajectory_id=f"{episode[0].group_id}-{number}",
            steps=states_and_actions(turns[number], credit.state),
            reward=rewards[number],
        )
        for number, episode in enumerate(episodes)
        if episode
    )
    for episode in episodes:
        for sample in episode:
            sample.advantage = next(values)


def _turn(sample: TrlSample, where: str) -> Turn:
    """Return what was seen since the policy's last message, and its new one."""
    if not sample.completion:
        raise InputError(f"{where} must have a message in `completion`: found none")
    prompt = [message_of(message, f"a prompt's message in {where}") for message in sample.prompt]
    last = max((i for i, m in enumerate(prompt) if m.role == "assistant"), default=-1)
    return Turn(
        seen=tuple(prompt[last + 1 :]),
        message=message_of(sample.completion[-1], f"the completion of {where}"),
    )
