"""How many decisions to ask for at a state: what `history/` says, by the rules of 3SPO.

The counts are of earlier iterations and stay as they are while one is collected; once it is counted
itself, nothing of it is played. A state is matched by its task and its exact text; where a merge
united several texts, only the first is known here, and the others are as new.
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
from graphcredit.store.credit_marks.formulas import history_configuration
from graphcredit.store.errors import InputError, OptionError
from graphcredit.store.parquet.shards import conform, open_parquet
from graphcredit.store.schema import STATE_SCORE_COLUMNS


@dataclass(frozen=True, kw_only=True, slots=True)
class StateScore:
    """What a run knows of a state."""

    num_total: int
    """Trajectories that acted in it, the paper's n."""
    score: float
    """S: 1 where nothing is known, small where it is mastered, 0 where it is intractable."""
    num_rollouts: int
    """Decisions to ask for: none truncates, one goes on, more branch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Allocation:
    """The scores of some tasks' states, and what follows from them.

    S comes from `history/`, where credit has written it (3SPO paper, Eq. 1). A state that is not
    there, and the goal, is one where nobody acted: n = 0, S = 1, so G_max decisions (Eq. 3).
    """

    tree_size: int
    """Trajectories that a tree has at most."""
    scores: Mapping[tuple[str, str], StateScore]
    """By task and state."""
    g_max: int = 8
    """G_max: decisions to ask for at a state of score 1."""
    omega_k: float = 0.1
    """How fast novelty wears off with visits."""
    iterations: tuple[int, ...] = ()
    """The iterations that are counted, ascending."""

    @classmethod
    def read(cls, store: Store, *, run_id: str, task_ids: Collection[str], tree_size: int) -> Self:
        """Read what a run knows of some tasks; nothing where it has no `history/` yet.

        Args:
            store: The store.
            run_id: The run.
            task_ids: The tasks that are to be played.
            tree_size: Trajectories that a tree has at most.

        Raises:
            SchemaError: The file is damaged, or not of this schema.
            InputError: It was counted by another version of the formula.
        """
        path = store.history_path(run_id)
        if not path.exists():
            return cls(tree_size=tree_size, scores={})
        with open_parquet(path) as file:
            made_by = history_configuration(file.schema_arrow)
            if made_by is None:
                raise InputError(
                    "an allocation must be by counts of the formula of spo3 that this program has: "
                    f"{path} was made by another version of it, or does not say by which. Run "
                    f"`graphcredit credit STORE --run {run_id} --estimator spo3`, which counts anew"
                )
            table = conform(file.read(), STATE_SCORE_COLUMNS, where=str(path))
        known = table.filter(pc.field("task_id").isin(pa.array(task_ids, pa.string())))
        return cls(
            tree_size=tree_size,
            scores={
                (row["task_id"], row["state"]): StateScore(
                    num_total=row["num_total"],
                    score=row["score"],
                    num_rollouts=row["num_rollouts"],
                )
                for row in known.to_pylist()
            },
            g_max=made_by["options"]["g_max"],
            omega_k=made_by["options"]["omega_k"],
            iterations=tuple(sorted(map(int, made_by["steps"]))),
        )

    def check_precedes(self, iteration: int, path: Path) -> None:
        """Raise OptionError where more is counted than what came before an iteration.

        Args:
            iteration: The one that is to be played.
            path: The file that the counts are from, for the message.
        """
        counted = [number for number in self.iterations if number >= iteration]
        if counted:
            raise OptionError(
                f"an allocation must be by earlier iterations: iteration {iteration} is to be "
                f"played, and {path} counts iterations {', '.join(map(str, counted))} too, so what "
                "is missing would branch otherwise than what is there. Give this collection "
                f"another --run or an --iteration after {counted[-1]}; or, to play it anew, take "
                f"steps and credit of iterations {iteration} and above out of the store, remove "
                "that file, and run `graphcredit credit` again."
            )

    def num_rollouts(self, task_id: str, state: str) -> int:
        """Return how many decisions to ask for at a state."""
        return self._score(task_id, state).num_rollouts

    def step_reward(self, task_id: str, before: str, done: Transition) -> float:
        """Return what a step is worth before anyone knows how its trajectory ends.

            w·[s' ≠ s] + (0.5 - w)·(S(s) - S(s')) + 0.5·[success],  w = 0.5·exp(-ω_k n(s))

        A step that succeeds leads to the goal. Source: 3SPO paper, Eq. 2.

        Args:
            task_id: The task.
            before: The state s that the step leaves.
            done: What the step did.
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
