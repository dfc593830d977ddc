"""The complete rollouts of a store as arrays: what they did, were told, and how they ended."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from graphcredit.credit.steps.arrays import Bools, Floats, Ints
from graphcredit.store.layout import Store
from graphcredit.store.parquet.numbers import numpy_of
from graphcredit.store.sql.catalog import Connection, with_views

_LONGEST_ANSWER = 80
"""Characters of a result that is an answer by itself; of a longer one only an error is read."""

ERROR = (
    r"(?:\b\w*(?:Error|Exception)\b|Traceback \(most recent call last\)|command not found"
    r"|No such file or directory|[Pp]ermission denied|[Tt]imed out|\b\d+ failed\b"
    r"|^\s*(?:ERROR|Error|error|FAILED|Failed)\b[^\n\"]{0,40}"
    r"|\"(?:error|is_error|isError|exception)\": *(?:true|\"[^\"]{1,40}))"
)
"""What a result says of an error, for DuckDB's regular expressions."""

IS_GRADED = """(
    count(success) OVER here < count(*) OVER here OR count(DISTINCT "return") OVER here > (
        if(bool_and(success) OVER here = bool_or(success) OVER here, 1, 2)
    )
)"""
"""Whether outcomes of a task are scores: nobody says who won, or wins tell less than returns."""

_ROLLOUTS = f"""
    CREATE TEMP TABLE rollouts AS
    SELECT *, {IS_GRADED} AS is_graded
    FROM (
        SELECT run_id, iteration, task_id, trajectory_id, num_steps, success, "return", truncated
        FROM trajectories WHERE is_complete
    )
    WINDOW here AS (PARTITION BY run_id, iteration, task_id)
    ORDER BY run_id, iteration, task_id, trajectory_id
"""

_STEPS = f"""
    WITH numbered AS (SELECT rowid AS rollout, run_id, iteration, trajectory_id FROM rollouts),
    followed AS (
        SELECT rollout, step_index, action, state_id,
            lead(coalesce(observation, state)) OVER (
                PARTITION BY rollout ORDER BY step_index
            ) AS result
        FROM enriched JOIN numbered USING (run_id, iteration, trajectory_id)
    )
    SELECT rollout, step_index, action, coalesce(state_id, -1) AS state, regexp_replace(
            if(length(result) <= {_LONGEST_ANSWER}, trim(result),
                nullif(regexp_extract(left(result, 600), $1), '')), '\\d+', '#', 'g'
        ) AS told
    FROM followed ORDER BY rollout, step_index
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownStep:
    """A step of a rollout, which shows what is told."""

    run_id: str
    iteration: int
    task_id: str
    trajectory_id: str
    step_index: int
    action: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Log:
    """Rollouts in the order of their groups, and their steps in the order of the rollouts."""

    names: pa.Table
    """A row for each rollout: `run_id`, `iteration`, `task_id`, `trajectory_id`."""
    group: Ints
    """[num_rollouts]: the group of each, from 0."""
    won: Bools
    """[num_rollouts]"""
    outcome: Floats
    """[num_rollouts]: the return if `is_graded`; else 1 for a win."""
    is_graded: bool
    """Whether rollouts are compared by returns, and not by wins."""
    truncated: Bools
    """[num_rollouts]: whether the environment ended it before it was done."""
    rollout: Ints
    """[num_steps]: the rollout of each step."""
    index: Ints
    """[num_steps]: its place in it."""
    action: Ints
    """[num_steps]: which of `actions`."""
    actions: list[str]
    """The distinct actions."""
    state: Ints
    """[num_steps]: the state before each step, a number for each of a group; -1 without credit."""
    told: Ints
    """[num_steps]: which of `answers` the step was answered with; -1 for none that is short."""
    answers: list[str]
    """The distinct short results and errors, each number in them as `#`."""

    @property
    def num_rollouts(self) -> int:
        """Number of rollouts."""
        return len(self.group)

    @property
    def last(self) -> Ints:
        """[num_rollouts]: the row of the last step of each."""
        return np.searchsorted(self.rollout, np.arange(self.num_rollouts), side="right") - 1

    def num_tasks(self, groups: Ints) -> int:
        """Return how many tasks some groups have: several runs may have the same."""
        firsts = np.searchsorted(self.group, np.unique(groups))
        return len({self.names["task_id"][first].as_py() for first in firsts.tolist()})

    def shown(self, row: int) -> dict[str, Any]:
        """Return the fields of a `ShownStep`."""
        return {
            **self.names.slice(int(self.rollout[row]), 1).to_pylist()[0],
            "step_index": int(self.index[row]),
            "action": self.actions[self.action[row]],
        }


def read_log(store: Store, *, run_id: str | None = None, iteration: int | None = None) -> Log:
    """Return the complete rollouts of a store.

    Raises:
        SchemaError: A file cannot be read.
    """
    return with_views(store, log_in, run_id=run_id, iteration=iteration)


def log_in(connection: Connection) -> Log:
    """Return the complete rollouts of the views."""
    connection.execute(_ROLLOUTS)
    rollouts = connection.sql("FROM rollouts").to_arrow_table()
    steps = connection.sql(_STEPS, params=[ERROR]).to_arrow_table()
    names = rollouts.select(["run_id", "iteration", "task_id", "trajectory_id"])
    keys = list(zip(*(names[name].to_pylist() for name in names.column_names[:3]), strict=True))
    is_first = np.array([one != other for one, other in zip(keys[1:], keys, strict=False)])
    won = numpy_of(rollouts["success"]).astype(bool)
    is_graded = bool(len(won) and numpy_of(rollouts["is_graded"]).mean() > 0.5)
    group = np.concatenate([np.zeros(min(1, len(keys)), int), np.cumsum(is_first, dtype=int)])
    rollout = numpy_of(steps["rollout"]).astype(int)
    action, actions = _codes(steps["action"])
    told, answers = _codes(steps["told"])
    return Log(
        names=names,
        group=group,
        won=won,
        outcome=numpy_of(rollouts["return"]) if is_graded else won.astype(float),
        is_graded=is_graded,
        truncated=numpy_of(rollouts["truncated"]).astype(bool),
        rollout=rollout,
        index=numpy_of(steps["step_index"]).astype(int),
        action=action,
        actions=actions,
        state=_states(numpy_of(steps["state"]).astype(int), group[rollout]),
        told=told,
        answers=answers,
    )


def _states(state: Ints, group: Ints) -> Ints:
    """Return numbers that are equal for equal states of one group."""
    code = group * (int(state.max(initial=0)) + 1) + state
    return np.where(state < 0, -1, np.unique(code, return_inverse=True)[1])


def _codes(column: pa.ChunkedArray) -> tuple[Ints, list[str]]:
    """Return which of the distinct texts each row has; -1 for null."""
    coded = column.combine_chunks().dictionary_encode()
    codes = numpy_of(coded.indices, null=-1)
    return codes.astype(int), coded.dictionary.to_pylist()
