"""From the steps of a training batch to advantages, the same for every framework."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from graphcredit.collector.recording.recorder import StepRecorder
from graphcredit.credit.estimators.table import Assigner, chosen
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.crediting import compute
from graphcredit.step_defaults import with_defaults
from graphcredit.store.errors import OptionError


@dataclass(frozen=True, kw_only=True, slots=True)
class Episode:
    """A trajectory of a batch."""

    task_id: str
    trajectory_id: str
    steps: Sequence[tuple[str, str]]
    """State and action of each step."""
    reward: float
    """Its total reward."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepCredit:
    """What the steps of a batch are credited with, and where they are recorded."""

    estimator: str | Assigner = "reach"
    """One estimator: its name, or an object of `graphcredit.estimators`."""
    merge: str | MergeSettings = "exact"
    """Which texts are one state, as in `compute`."""
    state: str = "last"
    """What of the messages before an action identifies the state, as `graphcredit import --state`:
    last, results, calls, effects:TOOL, facts, window:K, regex:PATTERN, json:PATH and others. Where
    the batch has states, they are used."""
    success_at: float = 1.0
    """Least total reward of a trajectory that succeeded."""
    recorder: StepRecorder | None = None
    """Records every trajectory in a store, if given. One that is there already must be the same."""

    @classmethod
    def of_options(cls, estimator: str, options: Mapping[str, Any]) -> Self:
        """Return what a framework's configuration says, whose options are named as here.

        Raises:
            OptionError: An option has no such name.
        """
        names = [each.name for each in fields(cls) if each.name not in ("estimator", "recorder")]
        if unknown := [name for name in options if name not in names]:
            raise OptionError(
                f"options of StepCredit are {', '.join(names)}: got {', '.join(unknown)}"
            )
        return cls(estimator=estimator, **options)

    def advantages(self, rows: pl.DataFrame) -> NDArray[np.float64]:
        """Return the advantage of each step.

        Args:
            rows: task_id, trajectory_id, state, action, reward, and is_action_valid where the batch
                says it; the rows of a trajectory in order. Rollouts of one `task_id` are a group.

        Raises:
            OptionError: There is not one estimator.
            InputError: A row has a null, or an estimator needs what a batch does not have.
            StepRefusedError: The recorder refuses a step.
        """
        name, *others = chosen(self.estimator)
        if others:
            raise OptionError(
                f"a batch is credited by one estimator: got {', '.join((name, *others))}"
            )
        total = pl.col("reward").sum().over("trajectory_id")
        steps = with_defaults(rows.with_columns(success=total >= self.success_at).to_arrow())
        if self.recorder is not None:
            _record(pl.DataFrame(steps), self.recorder)
        credit = compute(steps, estimators=self.estimator, merge=self.merge, on_incomplete="raise")
        # Without rows there are no columns of an estimator.
        values = credit[f"{name}_advantage"] if credit.num_rows else credit["step_index"]
        return values.to_numpy().astype(np.float64)

    def of_episodes(self, episodes: Iterable[Episode]) -> Iterator[float]:
        """Yield the advantage of each step, in order; the reward is that of the last one.

        Raises:
            OptionError, InputError, StepRefusedError: As `advantages`.
        """
        rows = [
            {
                "task_id": episode.task_id,
                "trajectory_id": episode.trajectory_id,
                "state": state,
                "action": action,
                "reward": float(episode.reward) if number == len(episode.steps) else 0.0,
            }
            for episode in episodes
            for number, (state, action) in enumerate(episode.steps, start=1)
        ]
        return iter(self.advantages(pl.DataFrame(rows)).tolist() if rows else [])


def _record(steps: pl.DataFrame, recorder: StepRecorder) -> None:
    ids = ("task_id", "trajectory_id")
    for played in steps.partition_by("trajectory_id", maintain_order=True):
        rows = played.drop("step_index").to_dicts()
        with recorder.trajectory(**{name: rows[0][name] for name in ids}) as trajectory:
            for row in rows:
                trajectory.log(**{k: v for k, v in row.items() if k not in ids and v is not None})
