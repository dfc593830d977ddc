"""From sequences of tokens to an advantage for each token, the same for every framework."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from graphcredit.collector.importers.messages.tokens import runs_of
from graphcredit.integrations.step_credit import Episode, StepCredit
from graphcredit.store.errors import InputError, OptionError

Decode = Callable[[list[int]], str]
"""Returns the text of tokens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A sequence of a batch: a prompt, and a response in which the policy took one turn or more."""

    task_id: str
    """The group: rollouts of one task by one policy."""
    trajectory_id: str
    """Rows of one trajectory are in order."""
    prompt: Sequence[int]
    response: Sequence[int]
    mask: Sequence[int]
    """1 for each token of the response that the policy sampled, else 0."""
    reward: float
    """Of the whole trajectory; that of its last row counts."""
    states: Sequence[str] | None = None
    """The state before each turn, where the rollout knows it. A row without a turn needs none."""


def token_advantages(
    rows: Sequence[Row], decode: Decode, credit: StepCredit | None = None
) -> list[list[float]]:
    """Return the advantage of each token of each response, 0 where it is not trained.

    A turn is a run of tokens that the policy sampled. Its state is the text since the turn before.
    For the first turn of a row that is what the prompt adds to the sequence, or else to the prompt,
    of the row before; where it continues neither, the whole prompt.

    Raises:
        OptionError: `StepCredit.state` is given.
        InputError: A mask or the states of a row do not fit it; or see `StepCredit`.
    """
    credit = credit or StepCredit()
    if credit.state != StepCredit().state:
        raise OptionError(
            f"StepCredit(state={credit.state}) is for messages, and this batch has tokens: let the "
            "rollout say its states"
        )
    spans = [_spans(row) for row in rows]
    of_trajectory: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        of_trajectory.setdefault(row.trajectory_id, []).append(number)
    values = credit.of_episodes(
        Episode(
            task_id=rows[numbers[0]].task_id,
            trajectory_id=name,
            steps=[
                step
                for before, number in zip([None, *numbers], numbers, strict=False)
                for step in _steps(
                    rows[number], None if before is None else rows[before], spans[number], decode
                )
            ],
            reward=rows[numbers[-1]].reward,
        )
        for name, numbers in of_trajectory.items()
    )
    advantages = [[0.0] * len(row.response) for row in rows]
    for numbers in of_trajectory.values():
        for number in numbers:
            for start, stop in spans[number]:
                advantages[number][start:stop] = [next(values)] * (stop - start)
    return advantages


def spread(rows: Sequence[Sequence[float]], like: Any, *, to_the_right: bool = False) -> Any:
    """Return a tensor as `like`, [num_rows, length]: rows aligned at one side, else 0."""
    tensor = like.new_zeros(like.shape)
    for number, row in enumerate(rows):
        start = like.shape[1] - len(row) if to_the_right else 0
        tensor[number, start : start + len(row)] = like.new_tensor(row)
    return tensor


def _spans(row: Row) -> list[tuple[int, int]]:
    """Return where the turns of a response lie: the first token, and the first one after it."""
    if len(row.mask) != len(row.response):
        raise InputError(
            f"a row of rollout {row.trajectory_id} must have a mask for each of "
            f"{len(row.response)} tokens: found {len(row.mask)}"
        )
    spans = [(start, end) for is_sampled, start, end in runs_of(row.mask) if is_sampled]
    if spans and row.states is not None and len(row.states) != len(spans):
        raise InputError(
            f"a row of rollout {row.trajectory_id} must have a state for each of {len(spans)} "
            f"turns, which are the runs of 1 in its mask: found {len(row.states)}"
        )
    return spans


def _steps(
    row: Row, before: Row | None, spans: Sequence[tuple[int, int]], decode: Decode
) -> list[tuple[str, str]]:
    """Return the state and the action of each turn of a row."""
    actions = [decode(list(row.response[start:stop])) for start, stop in spans]
    if actions and row.states is not None:
        return list(zip(row.states, actions, strict=True))
    between = [row.response[stop:start] for (_, stop), (start, _) in pairwise(spans)]
    seen = [_new(row, before), *between] if spans else []
    return [(decode(list(s)), action) for s, action in zip(seen, actions, strict=True)]


def _new(row: Row, before: Row | None) -> Sequence[int]:
    """Return what a prompt adds to the row before."""
    prompt = list(row.prompt)
    if before is not None:
        for known in ([*before.prompt, *before.response], list(before.prompt)):
            if len(known) < len(prompt) and prompt[: len(known)] == known:
                return prompt[len(known) :]
    return prompt
