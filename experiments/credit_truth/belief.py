"""Can a number be believed? Values against the truth, and credit where there is none to give.

**Calibration.** The value that an estimator gives the state of a step is compared with the exact
V_t(s) of the policy that played, and with what the group's mean return would have said.

**Centre.** Where all of a group earned the same, and in groups of one, returns tell nothing: the
credit should be 0. Where no two rollouts share a state, a graph tells nothing: the credit should be
GRPO's. Units are the RMS of a credit in groups that won some and lost some.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from experiments.credit_truth.judge import Played
from experiments.credit_truth.padding import padded, with_waits
from experiments.credit_truth.rollouts import step_table
from experiments.episodes import GROUP_SIZE, Floats, Ints, advantages
from graphcredit.credit.estimators.grpo import Grpo
from graphcredit.credit.estimators.table import Assigner

BINS = 10
"""Bins of a reliability curve, each as wide."""

CALIBRATION = ("bias_first", "rmse", "rmse_group")
CENTRE = (
    *(f"{kind}_{size}" for kind in ("won", "lost", "alone") for size in ("mean", "max")),
    *("apart_mean", "apart_correlation"),
)
"""Figures of `Log.centre`."""

_ALONE = 64
"""Episodes that are credited as groups of one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Log:
    """What is logged of sampled episodes, and what is true of it."""

    steps: pa.Table
    """As a collector would log them, waits among them."""
    place: Ints
    """[num_steps] rows of the steps that the policy chose."""
    episode: Ints
    """[num_rows]."""
    truth: Floats
    """[num_steps] exact V_t(s)."""
    earned: Floats
    """[num_episodes] return."""

    @classmethod
    def of(cls, played: Played, num_waits: int) -> "Log":
        """Return the log of a unit's episodes with that many waits after each step."""
        world, rollouts = played.world, played.rollouts
        logged, place = rollouts, np.arange(len(rollouts.state))
        if num_waits:
            logged, place = with_waits(world, rollouts, num_waits)
        return cls(
            steps=step_table(
                padded(world, num_waits) if num_waits else world, logged, lists="none"
            ),
            place=place,
            episode=logged.episode,
            truth=played.exact.value[rollouts.time, rollouts.state],
            earned=world.score[rollouts.target[rollouts.is_last]],
        )

    def calibration(self, value: Floats) -> dict[str, Any]:
        """Return how near the [num_rows] values of the steps' states are to the truth."""
        own, episode = value[self.place], self.episode[self.place]
        of_group = self.earned.reshape(-1, GROUP_SIZE).mean(1)[episode // GROUP_SIZE]
        is_first = np.diff(episode, prepend=-1) != 0
        bin_of = np.clip((own * BINS).astype(np.int64), 0, BINS - 1)
        sums = (None, own, self.truth, self.earned[episode])
        return {
            "bias_first": float((own - self.truth)[is_first].mean()),
            "rmse": _rms(own - self.truth),
            "rmse_group": _rms(of_group - self.truth),
            "bins": [np.bincount(bin_of, each, BINS).tolist() for each in sums],
        }

    def centre(self, name: str, options: Assigner, credit: Floats) -> dict[str, float | None]:
        """Return the size of credit where returns, or the graph, tell nothing.

        Args:
            name: Of the estimator.
            options: Its settings.
            credit: [num_rows] its credit of this log.
        """
        groups = self.earned.reshape(-1, GROUP_SIZE)
        all_won, all_lost = (groups == 1).all(1), (groups == 0).all(1)
        of_row = self.episode // GROUP_SIZE
        is_mixed = (groups.max(1) > groups.min(1))[of_row]
        unit = _rms(credit[is_mixed]) if is_mixed.any() else 1.0
        found = _size("won", credit[all_won[of_row]], unit)
        found |= _size("lost", credit[all_lost[of_row]], unit)
        few = self.steps.slice(0, int(np.searchsorted(self.episode, _ALONE)))
        alone = _with(few, task_id=few["trajectory_id"])
        found |= _size("alone", _credit_of(alone, name, options), unit)
        said, of_grpo = (
            _credit_of(self._apart(), each, its)[is_mixed]
            for each, its in ((name, options), ("grpo", Grpo()))
        )
        found["apart_mean"] = float((said.mean() - of_grpo.mean()) / unit) if unit else None
        varies = len(said) > 1 and said.std() > 0 and of_grpo.std() > 0
        found["apart_correlation"] = float(np.corrcoef(said, of_grpo)[0, 1]) if varies else None
        return found

    def _apart(self) -> pa.Table:
        """Return the steps as if no two episodes shared a state."""
        steps = self.steps
        texts: dict[str, pa.ChunkedArray] = {}
        for column in ("state", "next_state"):
            parts = [steps[column], steps["trajectory_id"], ", "]
            texts[column] = pc.call_function("binary_join_element_wise", parts)
        return _with(steps, **texts)


def _credit_of(steps: pa.Table, name: str, options: Assigner) -> Floats:
    (credit,) = advantages(steps, {name: options}).values()
    return credit


def _size(kind: str, credit: Floats, unit: float) -> dict[str, float | None]:
    """Return the mean and the largest size of credit in units; None where there is none."""
    if not len(credit) or not unit:
        return {f"{kind}_mean": None, f"{kind}_max": None}
    return {
        f"{kind}_mean": float(credit.mean()) / unit,
        f"{kind}_max": float(np.abs(credit).max()) / unit,
    }


def _with(steps: pa.Table, **columns: pa.ChunkedArray) -> pa.Table:
    for name, column in columns.items():
        steps = steps.set_column(steps.column_names.index(name), name, column)
    return steps


def _rms(values: Floats) -> float:
    return float(np.sqrt((values**2).mean()))
