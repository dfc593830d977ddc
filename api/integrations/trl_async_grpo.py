"""TRL's AsyncGRPOTrainer: the advantage of each sample that a rollout worker puts on the queue.

A sample has one advantage, so a worker makes one sample of each step.
"""

from collections.abc import Sequence
from typing import Any

from graphcredit.collector.importers.messages.rollout import Turn
from graphcredit.integrations.message_episodes import Chat, turn_advantages, turns_of
from graphcredit.integrations.step_credit import StepCredit
from graphcredit.store.errors import InputError


def set_advantages(
    episodes: Sequence[Sequence[Any]], rewards: Sequence[float], credit: StepCredit | None = None
) -> None:
    """Give each of TRL's `RolloutSample`s the advantage of its step.

    Call it in a rollout worker, before it puts the samples of whole groups on its queue.

    Args:
        episodes: The samples of each episode in order, one a step.
        rewards: The total reward of each episode.
        credit: How steps are credited.

    Raises:
        InputError: There is not one reward for each episode, or a sample has no message; or see
            `StepCredit`.
    """
    if len(episodes) != len(rewards):
        raise InputError(
            f"each episode must have a reward: got {len(episodes)} episodes, {len(rewards)} rewards"
        )
    chats = [
        Chat(
            task_id=str(episode[0].group_id),
            trajectory_id=f"{episode[0].group_id}-{number}",
            turns=[_turn(s, f"sample {i} of episode {number}") for i, s in enumerate(episode)],
            reward=reward,
        )
        for number, (episode, reward) in enumerate(zip(episodes, rewards, strict=True))
        if episode
    ]
    for episode, values in zip(filter(None, episodes), turn_advantages(chats, credit), strict=True):
        for sample, value in zip(episode, values, strict=True):
            sample.advantage = value


def _turn(sample: Any, where: str) -> Turn:
    """Return what was seen since the policy's last message, and its new one."""
    if not sample.completion:
        raise InputError(f"{where} must have a message in `completion`: found none")
    return turns_of([*sample.prompt, sample.completion[-1]], where)[-1]
