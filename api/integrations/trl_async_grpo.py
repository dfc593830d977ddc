"""TRL's AsyncGRPOTrainer: the advantage of each sample that a rollout worker puts on the queue.

Run with TRL 1.16.0. A sample has one advantage, so a worker makes one sample of each step.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import polars as pl

from graphcredit.collector.importers.messages.rollout import Turn
from graphcredit.integrations.chats import message_of, states_and_actions
from graphcredit.integrations.step_credit import StepCredit
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
    rows: list[dict[str, Any]] = []
    for number, (episode, reward) in enumerate(zip(episodes, rewards, strict=True)):
        turns = [
            _turn(sample, f"sample {i} of episode {number}") for i, sample in enumerate(episode)
        ]
        pairs = states_and_actions(turns, credit.state)
        for sample, (state, action) in zip(episode, pairs, strict=True):
            ids = {"task_id": str(sample.group_id), "trajectory_id": f"{sample.group_id}-{number}"}
            rows.append({**ids, "state": state, "action": action, "reward": 0.0})
        if pairs:
            rows[-1]["reward"] = float(reward)
    if not rows:
        return
    samples = [sample for episode in episodes for sample in episode]
    for sample, value in zip(samples, credit.advantages(pl.DataFrame(rows)).tolist(), strict=True):
        sample.advantage = value


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
