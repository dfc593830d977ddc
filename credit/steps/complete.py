"""Complete trajectories, the order of their steps, and why others are left out."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.credit.steps.arrays import Bools, Floats, Ints, starts_of_runs
from graphcredit.credit.steps.codes import Codes, encode, encode_together
from graphcredit.store.errors import SchemaError
from graphcredit.store.parquet.numbers import numpy_of
from graphcredit.store.plural import counted
from graphcredit.store.schema import LARGEST_NUMBER, SMALLEST_COST

COLUMNS: tuple[str, ...] = (
    "task_id",
    "trajectory_id",
    "step_index",
    "state",
    "next_state",
    "action",
    "is_action_valid",
    "reward",
    "cost",
    "terminated",
    "truncated",
    "success",
)
"""The step columns that completeness, the state graph and the estimators need."""

TEXT_COLUMNS: tuple[str, ...] = ("task_id", "trajectory_id", "state", "next_state", "action")

REASONS: tuple[str, ...] = (
    "a value is null",
    "a reward or cost is out of its range",
    "a step_index is there twice",
    "step_index is not 0 … T-1",
    "a next_state is not the following state",
    "a step before the last one has an end or a success",
    "the last step has no end",
)
"""Why a trajectory gets no credit; the first that applies is counted."""

_REMEDIES: tuple[str, ...] = (
    "fill it, or leave the rollout out",
    "scale or clip it",
    "number the steps of a rollout from 0, and give each rollout a name of its own",
    "number them from 0 without gaps; in a table without step_index, the order of the rows counts",
    "log the state of the next step there; a table without next_state takes it from there",
    "terminated, truncated and success belong on the last step: what follows it needs a "
    "trajectory_id of its own",
    "set terminated or truncated there",
)
"""What to do about each."""

_NULL, _OUT_OF_RANGE = 0, 1
"""Places of the reasons that are about a value."""

_RANGES = {"reward": (-LARGEST_NUMBER, LARGEST_NUMBER), "cost": (SMALLEST_COST, LARGEST_NUMBER)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Steps:
    """Steps of whole trajectories, sorted by task, trajectory and step index."""

    row: Ints
    """[n] row of the table each step came from."""
    task: Ints
    """[n] code of the task."""
    state: Ints
    """[n] code of the state's text."""
    next_state: Ints
    """[n] code of the next state's text, in the same list of texts."""
    action: Ints
    """[n] code of the action's text."""
    is_action_valid: Bools
    """[n] as logged."""
    reward: Floats
    """[n] as logged."""
    cost: Floats
    """[n] as logged."""
    is_success: Bools
    """[n] true on the last step of a successful trajectory."""
    is_judged: Bools
    """[n] true on the last step of a trajectory that is known to have succeeded, or not."""
    trajectory_start: Ints
    """[num_trajectories + 1] first step of each trajectory."""
    task_texts: pa.Array
    """Text of each task code."""
    state_texts: pa.Array
    """Text of each state code."""
    action_texts: pa.Array
    """Text of each action code."""

    @property
    def is_valid(self) -> Bools:
        """[n] whether the action did something: a step that ends in success did."""
        return self.is_action_valid | self.is_success


_PLACE = ("task_id", "trajectory_id", "step_index")

_PER_STEP = (
    "row",
    "task",
    "state",
    "next_state",
    "action",
    "is_action_valid",
    "reward",
    "cost",
    "is_success",
    "is_judged",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOut:
    """Trajectories that get no credit."""

    num_trajectories: Ints
    """[len(REASONS)] how many, by reason."""
    num_steps: int
    """Steps in all of them."""
    example: str | None
    """One of them, with its reason and the first step that gives it; one with a number out of its
    range before others."""


def complete_trajectories(table: pa.Table) -> tuple[Steps, LeftOut]:
    """Return the complete trajectories of a table, in an order that its rows do not influence.

    Args:
        table: Whole groups of one run and iteration; `COLUMNS`, in any row order.

    Raises:
        SchemaError: A task, trajectory or step index is null, or a trajectory is in two tasks.
    """
    task, trajectory = encode(table["task_id"]), encode(table["trajectory_id"])
    index = _keys(table, task, trajectory)
    refuse_shared_names(task, trajectory)
    order, starts = _order(task.rank(), trajectory.rank(), index)
    state, next_state = encode_together(table["state"], table["next_state"])
    action = encode(table["action"])
    steps = Steps(
        row=order,
        task=task.code[order],
        state=state.code[order],
        next_state=next_state.code[order],
        action=action.code[order],
        is_action_valid=_bools(table["is_action_valid"])[order],
        reward=_floats(table["reward"])[order],
        cost=_floats(table["cost"])[order],
        is_success=_bools(table["success"])[order],
        is_judged=_bools(pc.is_valid(table["success"]))[order],
        trajectory_start=starts,
        task_texts=task.texts,
        state_texts=state.texts,
        action_texts=action.texts,
    )
    broken = _broken_rules(steps, index[order], _Ends.read(table, order))
    first = np.minimum.reduceat(broken, starts[:-1]) if len(broken) else broken
    is_complete = first == len(REASONS)
    return select_trajectories(steps, is_complete), _left_out(table, steps, broken, first)


def _keys(table: pa.Table, task: Codes, trajectory: Codes) -> Ints:
    for name in _PLACE:
        if table[name].null_count:
            raise SchemaError(
                f"{name} must not be null: it is in {counted(table[name].null_count, 'step')} of "
                "this iteration. `graphcredit check STORE` names file and row."
            )
    return numpy_of(table["step_index"]).astype(np.int64)


def refuse_shared_names(task: Codes, trajectory: Codes) -> None:
    """Raise SchemaError where steps of two tasks have one trajectory_id; both are [n] codes.

    Within an iteration everything else, from the views to the trainer, knows a trajectory by it.
    """
    is_known = (task.code >= 0) & (trajectory.code >= 0)
    pair = (trajectory.code * max(len(task.texts), 1) + task.code)[is_known]
    owner, of_task = np.divmod(
        np.unique(pair[np.flatnonzero(np.diff(pair, prepend=-1))]), max(len(task.texts), 1)
    )
    shared = np.flatnonzero(owner[1:] == owner[:-1])
    if len(shared):
        first, second = (task.texts[int(of_task[shared[0] + i])].as_py() for i in (0, 1))
        name = trajectory.texts[int(owner[shared[0]])].as_py()
        others = f", and {len(shared) - 1} more like it" if len(shared) > 1 else ""
        raise SchemaError(
            f"a trajectory_id must be of one task within an iteration: {name!r} is of task "
            f"{first!r} and of task {second!r}{others}. Give every rollout a name of its own; "
            "`graphcredit check STORE` names the files that share one"
        )


def _order(task: Ints, trajectory: Ints, index: Ints) -> tuple[Ints, Ints]:
    """Return the rows sorted by task, trajectory and index, and where each trajectory starts."""
    owner = task * (trajectory.max(initial=0) + 1) + trajectory
    lowest = int(index.min(initial=0))
    span = int(index.max(initial=0)) - lowest + 1
    if (int(owner.max(initial=0)) + 1) * span < np.iinfo(np.int64).max:
        order = np.argsort(owner * span + (index - lowest), kind="stable")
    else:
        order = np.lexsort((index, owner))
    return order, starts_of_runs(owner[order])


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ends:
    has_end: Bools
    has_null: Bools

    @classmethod
    def read(cls, table: pa.Table, order: Ints) -> "_Ends":
        names = ("is_action_valid", "terminated", "truncated", "reward", "cost")
        with_nulls = [table[name] for name in names if table[name].null_count]
        no_nulls = np.zeros(table.num_rows, bool)
        return cls(
            has_end=(_bools(table["terminated"]) | _bools(table["truncated"]))[order],
            has_null=np.any([no_nulls, *(_bools(pc.is_null(c)) for c in with_nulls)], axis=0)[
                order
            ],
        )


def _broken_rules(steps: Steps, index: Ints, ends: _Ends) -> Ints:
    """Return [n] the first in REASONS that each step gives; their number where it gives none."""
    first, last = steps.trajectory_start[:-1], steps.trajectory_start[1:] - 1
    num_steps = len(steps.row)
    position = np.arange(num_steps) - np.repeat(first, last - first + 1)
    is_last = np.zeros(num_steps, bool)
    is_last[last] = True
    is_repeated = np.diff(index, prepend=-1) == 0
    is_repeated[first] = False
    follows = np.ones(num_steps, bool)
    follows[:-1] = (steps.next_state[:-1] == steps.state[1:]) | is_last[:-1]
    has_text = (steps.state >= 0) & (steps.next_state >= 0) & (steps.action >= 0)
    is_out = np.logical_or.reduce([_is_out_of_range(steps, name) for name in _RANGES])
    broken = (
        ends.has_null | ~has_text,
        is_out,
        is_repeated,
        index != position,
        ~follows,
        ~is_last & (ends.has_end | steps.is_judged),
        is_last & ~ends.has_end,
    )
    return np.select(broken, range(len(REASONS)), len(REASONS))


def select_trajectories(steps: Steps, is_kept: Bools) -> Steps:
    """Return the steps of some trajectories. `is_kept` is [num_trajectories]."""
    if is_kept.all():
        return steps
    lengths = np.diff(steps.trajectory_start)
    keep = np.repeat(is_kept, lengths)
    starts = np.concatenate(([0], np.cumsum(lengths[is_kept])))
    per_step = {name: getattr(steps, name)[keep] for name in _PER_STEP}
    return replace(steps, **per_step, trajectory_start=starts)


def _left_out(table: pa.Table, steps: Steps, broken: Ints, reason: Ints) -> LeftOut:
    """Count what is left out.

    Args:
        table: The rows of all steps.
        steps: All of them.
        broken: [n] from `_broken_rules`.
        reason: [num_trajectories] the least of its steps.
    """
    left_out = np.flatnonzero(reason < len(REASONS))
    example = None
    if len(left_out):
        first = left_out[(reason[left_out] != _OUT_OF_RANGE).argmin()]
        start, stop = steps.trajectory_start[first : first + 2].tolist()
        why = int(reason[first])
        places = start + np.flatnonzero(broken[start:stop] == why)
        nulls = [_nulls(table, int(steps.row[at])) for at in places] if why == _NULL else []
        # A state that is null makes the next state of the step before null, too.
        first_null = next((n for n, names in enumerate(nulls) if set(names) - {"next_state"}), 0)
        place = int(places[first_null])
        task, name, step = (table[column][int(steps.row[place])].as_py() for column in _PLACE)
        example = f"{name!r} of task {task!r}, step {step}: {REASONS[why]}"
        if why == _OUT_OF_RANGE:
            example += _number_out_of_range(steps, place)
        if why == _NULL:
            example += f" ({', '.join(nulls[first_null])})"
        example += f". Remedy: {_REMEDIES[why]}"
    return LeftOut(
        num_trajectories=np.bincount(reason[left_out], minlength=len(REASONS)),
        num_steps=int(np.diff(steps.trajectory_start)[left_out].sum()),
        example=example,
    )


def _nulls(table: pa.Table, row: int) -> list[str]:
    """Return the columns that are null in a row and must not be."""
    return [name for name in COLUMNS if name != "success" and not table[name][row].is_valid]


def _is_out_of_range(steps: Steps, name: str) -> Bools:
    """Return [num_steps] whether a number is out of its range, or none at all."""
    low, high = _RANGES[name]
    values: Floats = getattr(steps, name)
    return ~((low <= values) & (values <= high))


def _number_out_of_range(steps: Steps, step: int) -> str:
    """Say which number of a step is out of its range."""
    name = next(name for name in _RANGES if _is_out_of_range(steps, name)[step])
    low, high = _RANGES[name]
    return f" ({name} must be from {low:g} to {high:g}, found {getattr(steps, name)[step]:g})"


def _bools(column: pa.ChunkedArray) -> Bools:
    return numpy_of(column)


def _floats(column: pa.ChunkedArray) -> Floats:
    return numpy_of(column, np.nan).astype(np.float64)
