"""rLLM: a hook of its trainer that gives every step its advantage.

    UnifiedTrainer(..., traj_grouping_hook=rllm.with_credit(_default_traj_grouping_hook))

rLLM keeps what is there with `rllm.algorithm.use_precomputed_advantage=true`.
"""

from collections.abc import Callable, Iterable
from typing import Any

from graphcredit.collector.importers.messages.rollout import Turn
from graphcredit.integrations.message_episodes import Chat, turn_advantages, turns_of
from graphcredit.integrations.step_credit import StepCredit
from graphcredit.store.errors import InputError


def with_credit(
    grouping: Callable[..., list[Any]], credit: StepCredit | None = None
) -> Callable[..., list[Any]]:
    """Return rLLM's grouping hook, after which every step of its groups has an advantage.

    Args:
        grouping: `_default_traj_grouping_hook`, or another that returns `TrajectoryGroup`s.
        credit: How steps are credited.
    """

    def grouped(*args: Any, **options: Any) -> list[Any]:
        groups = grouping(*args, **options)
        set_advantages(groups, credit)
        return groups

    return grouped


def set_advantages(groups: Iterable[Any], credit: StepCredit | None = None) -> None:
    """Give every `Step` of rLLM's `TrajectoryGroup`s its advantage.

    A step's last message in `chat_completions` is its action, those since the answer before its
    state.

    Raises:
        InputError: A step has no answer, or a trajectory no reward; or see `StepCredit`.
    """
    trajectories = [(group, trajectory) for group in groups for trajectory in group.trajectories]
    values = turn_advantages(
        (
            Chat(
                task_id=group.group_id,
                trajectory_id=trajectory.uid,
                turns=[_turn(trajectory, number) for number in range(len(trajectory.steps))],
                reward=_reward(trajectory),
            )
            for group, trajectory in trajectories
        ),
        credit,
    )
    for (_, trajectory), of_steps in zip(trajectories, values, strict=True):
        for step, value in zip(trajectory.steps, of_steps, strict=True):
            step.advantage = value


def _turn(trajectory: Any, number: int) -> Turn:
    where = f"step {number} of rollout {trajectory.uid}"
    turns = turns_of(trajectory.steps[number].chat_completions, where)
    if not turns:
        raise InputError(f"{where} must have an answer in `chat_completions`: found none")
    return turns[-1]


def _reward(trajectory: Any) -> float:
    if trajectory.reward is None:
        raise InputError(f"rollout {trajectory.uid} must have a reward: found none")
    return float(trajectory.reward)
