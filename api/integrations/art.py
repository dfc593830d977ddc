"""OpenPipe ART: the advantages of turns where it tokenises groups of trajectories.

    art.install(art_backend)  # the module art.local.backend, before the backend is made

ART has one advantage for each sequence. So a sequence becomes one for each advantage of its turns,
with the mask of these turns alone: the loss is the same sum, at their price.
"""

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from functools import wraps
from itertools import count
from typing import Any

from graphcredit.integrations.message_episodes import Chat, turn_advantages, turns_of
from graphcredit.integrations.step_credit import StepCredit
from graphcredit.store.errors import InputError

_numbers = count()


def install(backend: Any, credit: StepCredit | None = None) -> None:
    """Let the module `art.local.backend` train on the advantages of turns."""
    backend.tokenize_trajectory_groups = with_credit(backend.tokenize_trajectory_groups, credit)


def with_credit(
    tokenize: Callable[..., Iterable[Any]], credit: StepCredit | None = None
) -> Callable[..., Iterator[Any]]:
    """Return ART's `tokenize_trajectory_groups` with advantages of turns.

    `scale_rewards` counts no more. Additional histories are refused.
    """

    @wraps(tokenize)
    def tokenized(
        tokenizer: Any, trajectory_groups: list[Any], *args: Any, **options: Any
    ) -> Iterator[Any]:
        drops = options.pop("drop_zero_advantage_trajectories", True)
        trajectories = [trajectory for group in trajectory_groups for trajectory in group]
        values = turn_advantages(_chats(trajectory_groups), credit)
        of_trajectory = dict(zip(map(id, trajectories), values, strict=True))
        options["drop_zero_advantage_trajectories"] = False
        for result in tokenize(tokenizer, trajectory_groups, *args, **options):
            for part in _parts(result, of_trajectory[id(result.trajectory)]):
                if part.advantage or not drops:
                    yield part

    return tokenized


def _chats(groups: Iterable[Any]) -> Iterator[Chat]:
    for number, group in zip(_numbers, groups, strict=False):
        for index, trajectory in enumerate(group):
            name = f"{number}-{index}"
            if trajectory.additional_histories:
                found = 1 + len(trajectory.additional_histories)
                raise InputError(f"rollout {name} must have one history: found {found}")
            said = trajectory.messages_and_choices  # a choice is what the policy sampled
            messages = [getattr(each, "message", each) for each in said]
            turns = turns_of(messages, f"rollout {name}", [hasattr(e, "message") for e in said])
            yield Chat(
                task_id=str(number), trajectory_id=name, turns=turns, reward=trajectory.reward
            )


def _parts(result: Any, values: list[float]) -> Iterator[Any]:
    """Yield a result for each advantage, with the mask of its turns alone."""
    starts = result.choice_offsets
    if not 0 < len(starts) == len(values):
        found = f"found {len(starts)} of {len(values)}"
        raise InputError(f"each answer must be a choice with log-probabilities: {found}")
    stops = [*starts[1:], len(result.token_ids)]
    for value in dict.fromkeys(values):
        part = copy(result)
        part.advantage, part.assistant_mask = value, [0] * len(result.token_ids)
        for start, stop, of_turn in zip(starts, stops, values, strict=True):
            if of_turn == value:
                part.assistant_mask[start:stop] = result.assistant_mask[start:stop]
        yield part
