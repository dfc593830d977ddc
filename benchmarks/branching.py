"""Counts the states that adaptive rollouts find, against uniform ones: the 3SPO paper's Table 3.

    python -m benchmarks.branching [--policy oracle:0.7] [--decisions 3000] [--rollouts 400]

Both play the same tasks with the same policy, iteration by iteration. The policy does not learn, so
the runs differ only in where it acts. After each iteration, the adaptive run computes the credit of
`spo3`, which decides where its trees branch. A decision is a sampled step; a step that a trajectory
shares with an earlier one does not count. A state is new if no earlier step of the run was there.
The table shows means over the seeds. Its last column is the gain in states of the adaptive run over
the uniform run of the same seed, from the lowest to the highest.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Literal, TypeAlias

import polars as pl
import pyarrow as pa

from benchmarks.machine import describe
from graphcredit.collector.collection import collect
from graphcredit.collector.environments.base import Task
from graphcredit.collector.environments.registry import environment_kind
from graphcredit.collector.options import CollectOptions
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store, create_store, read_steps

Allocation: TypeAlias = Literal["spo3"] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """Counts of a run at the end of one of its trajectories."""

    rollouts: int
    successes: int
    steps: int
    decisions: int
    states: int


def main() -> None:
    """Print, for uniform and adaptive rollouts, a row for each of the two budgets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="search")
    parser.add_argument("--games", default="2hop,3hop")
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--policy", default="oracle:0.7")
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--max-steps", type=int, default=15)
    parser.add_argument("--decisions", type=int, default=3000)
    parser.add_argument("--rollouts", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    kind = environment_kind(arguments.env)
    tasks = kind.list_tasks(arguments.games, num_tasks=arguments.tasks, seed=0)
    print(describe())
    print(
        f"{'budget':>16} {'play':>9} {'rollouts':>9} {'success':>8} {'steps':>7} {'decisions':>10} "
        f"{'states':>7} {'/rollout':>9} {'/100 decisions':>15} {'more states':>22}"
    )
    budgets = [f"{arguments.decisions:,} decisions", f"{arguments.rollouts:,} rollouts"]
    plays: dict[str, Allocation] = {"uniform": None, "adaptive": "spo3"}
    found = {
        play: [_at_budgets(tasks, allocation, seed, arguments) for seed in range(arguments.seeds)]
        for play, allocation in plays.items()
    }
    for place, budget in enumerate(budgets):
        uniform, adaptive = ([each[place] for each in found[play]] for play in plays)
        _show(budget, "uniform", uniform, "")
        gains = [b.states / a.states - 1 for a, b in zip(uniform, adaptive, strict=True)]
        _show(budget, "adaptive", adaptive, f"{min(gains):+.0%} to {max(gains):+.0%}")


def _at_budgets(
    tasks: Sequence[Task],
    allocation: Literal["spo3"] | None,
    seed: int,
    arguments: argparse.Namespace,
) -> tuple[Progress, Progress]:
    """Return a run's progress at the budget of decisions, and at the budget of rollouts."""
    by_decisions, by_rollouts = None, None
    for now in explore(tasks, allocation, seed, arguments):
        by_decisions = by_decisions or (now if now.decisions >= arguments.decisions else None)
        by_rollouts = by_rollouts or (now if now.rollouts == arguments.rollouts else None)
        if by_decisions and by_rollouts:
            return by_decisions, by_rollouts
    raise AssertionError("a run never ends")


def _show(budget: str, play: str, found: Sequence[Progress], gain: str) -> None:
    successes = fmean(one.successes / one.rollouts for one in found)
    per_rollout = fmean(one.states / one.rollouts for one in found)
    per_decision = fmean(one.states / one.decisions for one in found)
    print(
        f"{budget:>16} {play:>9} {fmean(one.rollouts for one in found):>9,.0f} {successes:>8.2f} "
        f"{fmean(one.steps for one in found):>7,.0f} "
        f"{fmean(one.decisions for one in found):>10,.0f} "
        f"{fmean(one.states for one in found):>7,.0f} "
        f"{per_rollout:>9.2f} {100 * per_decision:>15.2f} {gain:>22}",
        flush=True,
    )


def explore(
    tasks: Sequence[Task],
    allocation: Literal["spo3"] | None,
    seed: int,
    arguments: argparse.Namespace,
) -> Iterator[Progress]:
    """Play iteration after iteration; yield after each trajectory."""
    rollouts = successes = steps = decisions = iteration = 0
    states: set[tuple[str, str]] = set()
    with tempfile.TemporaryDirectory() as folder:
        store = create_store(Path(folder) / "store")
        while True:
            collect(
                store,
                tasks,
                CollectOptions(
                    policy=arguments.policy,
                    group_size=arguments.group_size,
                    max_steps=arguments.max_steps,
                    seed=seed,
                    iteration=iteration,
                    workers=0,
                    allocation=allocation,
                ),
            )
            assign_credit(store, CreditSettings(estimators=configure(["spo3"])))
            for path in _trajectories(store, iteration):
                rollouts += 1
                successes += path["success"][-1]
                steps += len(path)
                decisions += len(path) - json.loads(path["extra"][0]).get("shared_steps", 0)
                states |= set(path.select("task_id", "state").iter_rows())
                states |= set(path.select("task_id", "next_state").iter_rows())
                yield Progress(
                    rollouts=rollouts,
                    successes=successes,
                    steps=steps,
                    decisions=decisions,
                    states=len(states),
                )
            iteration += 1


def _trajectories(store: Store, iteration: int) -> list[pl.DataFrame]:
    """Return the steps of each trajectory, in the order in which they ended."""
    columns = ["trajectory_id", "step_index", "task_id", "state", "next_state"]
    columns += ["success", "logged_at", "extra"]
    tables = read_steps(store, columns=columns, iteration=iteration)
    steps = pl.DataFrame(pl.from_arrow(pa.concat_tables(tables)))
    paths = steps.sort("step_index").partition_by("trajectory_id")
    return sorted(paths, key=lambda path: path["logged_at"][-1])


if __name__ == "__main__":
    main()
