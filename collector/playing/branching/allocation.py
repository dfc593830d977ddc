"""Allocation of rollouts by 3SPO: the number of decisions to sample at a state, from `history/`.

The counts are of earlier iterations, and do not change while an iteration is collected. An
iteration that is itself counted cannot be collected any more. A state is looked up by its task and
exact text. If rules united several texts, only the first is known here; the others count as new. If
the guard made several states of that text, it is the one in which most trajectories acted.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.collector.environments.base import Transition
from graphcredit.store import Store
from graphcredit.store.errors import InputError, OptionError
from graphcredit.store.parquet.shards import conform, open_parquet
from graphcredit.store.provenance.configuration import history_configuration
from graphcredit.store.schema import STATE_SCORE_COLUMNS


@dataclass(frozen=True, kw_only=True, slots=True)
class StateScore:
    """The counts and the score of a state in a run."""

    num_total: int
    """Trajectories that acted in the state, the paper's n."""
    score: float
    """S: 1 if nothing is known, small if the state is mastered, 0 if it is intractable."""
    num_rollouts: int
    """Decisions to sample: 0 truncates, 1 continues, more branch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Allocation:
    """The scores of some tasks' states, and the decisions and step rewards that they imply.

    S comes from `history/`, which the credit stage writes (3SPO paper, Eq. 1). In the goal, and in
    a state that is not listed, nobody acted: n = 0 and S = 1, so G_max decisions (Eq. 3).
    """

    tree_size: int
    scores: Mapping[tuple[str, str], StateScore]
    g_max: int = 8
    """G_max: decisions to sample at a state of score 1."""
    omega_k: float = 0.1
    """Rate at which novelty decays with visits."""
    iterations: tuple[int, ...] = ()
    """The iterations that the counts include, ascending."""

    @classmethod
    def read(cls, store: Store, *, run_id: str, task_ids: Collection[str], tree_size: int) -> Self:
        """Read the scores of some tasks; without a `history/` file there are none.

        Raises:
            SchemaError: The file is damaged, or does not have this schema.
            InputError: The file was counted by another version of the formula.
        """
        path = store.history_path(run_id)
        if not path.exists():
            return cls(tree_size=tree_size, scores={})
        with open_parquet(path) as file:
            made_by = history_configuration(file.schema_arrow)
            if made_by is None:
                raise InputError(
                    "an allocation needs counts by this program's version of the spo3 formula: "
                    f"{path} was made by another version, or does not state one. Run "
                    f"`graphcredit credit STORE --run {run_id} --estimator spo3` to count again"
                )
            table = conform(file.read(), STATE_SCORE_COLUMNS, where=str(path))
        known = table.filter(pc.field("task_id").isin(pa.array(task_ids, pa.string())))
        return cls(
            tree_size=tree_size,
            scores={
                (row["task_id"], row["state"]): StateScore(
                    num_total=row["num_total"], score=row["score"], num_rollouts=row["num_rollouts"]
                )
                for row in known.sort_by("num_total").to_pylist()
            },
            g_max=made_by["options"]["g_max"],
            omega_k=made_by["options"]["omega_k"],
            iterations=tuple(sorted(map(int, made_by["steps"]))),
        )

    def check_precedes(self, iteration: int, path: Path) -> None:
        """Raise OptionError if the counts include this iteration or a later one."""
        counted = [number for number in self.iterations if number >= iteration]
        if counted:
            raise OptionError(
                f"an allocation must be by earlier iterations: iteration {iteration} is to be "
                f"played, but {path} also counts iterations {', '.join(map(str, counted))}, so the "
                "missing trees would branch differently from those in the store. Give this "
                f"collection another --run or an --iteration after {counted[-1]}; or, to play it "
                f"again, move steps and credit of iterations {iteration} and above out of the "
                "store, remove that file, and run `graphcredit credit` again."
            )

    def num_rollouts(self, task_id: str, state: str) -> int:
        """Return the number of decisions to sample at a state."""
        return self._score(task_id, state).num_rollouts

    def step_reward(self, task_id: str, before: str, done: Transition) -> float:
        """Return the step reward, by which decisions are ranked before their trajectory ends.

            w·[s' ≠ s] + (0.5 - w)·(S(s) - S(s')) + 0.5·[success],  w = 0.5·exp(-ω_k n(s))

        A step that succeeds leads to the goal. Source: 3SPO paper, Eq. 2.
        """
        after = done.observation.state
        here = self._score(task_id, before)
        score_after = 1.0 if done.success else self._score(task_id, after).score
        novelty = 0.5 * math.exp(-self.omega_k * here.num_total)
        return (
            novelty * (done.success or after != before)
            + (0.5 - novelty) * (here.score - score_after)
            + 0.5 * done.success
        )

    def _score(self, task_id: str, state: str) -> StateScore:
        unknown = StateScore(num_total=0, score=1.0, num_rollouts=self.g_max)
        return self.scores.get((task_id, state), unknown)
