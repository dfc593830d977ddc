"""Judge credit in the papers' two other worlds too, and with other lists of admissible actions.

    ALFWORLD_DATA=... python -m experiments.credit_quality.worlds --out results
    python -m experiments.credit_quality.worlds --out results --world sokoban

TextWorld's games are the held-out ones. ALFWorld's are published (`valid_seen`), and are left out
where `$ALFWORLD_DATA` is not set. The log is in OUT/worlds/log, the rows of each condition in
OUT/worlds/rows, and the results in OUT/worlds/credit-quality.{parquet,md}. Finished parts are
skipped; after a change of an estimator's code, delete its rows.
"""

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from experiments.credit_quality.averages import averages
from experiments.credit_quality.conditions import LISTS, Condition
from experiments.credit_quality.games import HELD_OUT
from experiments.credit_quality.logs import JUDGED, MAX_STEPS
from experiments.credit_quality.report import by_condition
from experiments.credit_quality.run import rows_of
from graphcredit.collector.collection import collect
from graphcredit.collector.environments.registry import environment_kind
from graphcredit.collector.options import CollectOptions
from graphcredit.store import Store, create_store
from graphcredit.store.files.tables import write_table

GROUP_SIZE = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Played:
    """How a world is played."""

    games: tuple[str, ...]
    num_tasks: int
    epsilon: float
    """Share of random actions of the policy `oracle:EPSILON`."""
    max_steps: int

    def condition(self, environment: str, lists: str) -> Condition:
        """Return the condition with some lists."""
        return Condition(
            environment=environment, epsilon=self.epsilon, group_size=GROUP_SIZE, lists=lists
        )


WORLDS: Mapping[str, Played] = {
    "textworld": Played(games=HELD_OUT, num_tasks=len(HELD_OUT), epsilon=0.85, max_steps=MAX_STEPS),
    "alfworld": Played(games=("valid_seen",), num_tasks=60, epsilon=0.7, max_steps=50),
    "sokoban": Played(games=("6x6b1", "7x7b2"), num_tasks=60, epsilon=0.7, max_steps=40),
}
"""Two thirds of random actions win too rarely in ALFWorld and Sokoban to compare anything."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--world", action="append", choices=list(WORLDS), help="by default all")
    parser.add_argument("--tasks", type=int, help="fewer games of each world")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    chosen = options.world or [
        name for name in WORLDS if name != "alfworld" or os.environ.get("ALFWORLD_DATA")
    ]
    folder = options.out / "worlds"
    log = create_store(folder / "log")
    found: list[pl.DataFrame] = []
    for name in chosen:
        games = play(log, name, num_tasks=options.tasks, num_workers=options.workers)
        found += [
            rows_of(log, WORLDS[name].condition(name, lists), games, folder / "rows")
            for lists in LISTS
        ]
    rows = pl.concat(found)
    write_table(rows.to_arrow(), folder / "credit-quality.parquet")
    text = tables(rows)
    (folder / "credit-quality.md").write_text(text, encoding="utf-8")
    print(text)


def play(log: Store, name: str, *, num_tasks: int | None, num_workers: int) -> list[str]:
    """Play the missing rollouts of a world; return its games.

    Args:
        log: Store of the rollouts.
        name: One of `WORLDS`.
        num_tasks: Most games; by default those of the world.
        num_workers: Processes that play.
    """
    world = WORLDS[name]
    number = min(num_tasks or world.num_tasks, world.num_tasks)
    # A list of full names must not be longer than the number of tasks.
    games = world.games[:number] if len(world.games) == world.num_tasks else world.games
    tasks = environment_kind(name).list_tasks(",".join(games), num_tasks=number, seed=0)
    done = collect(
        log,
        tasks,
        CollectOptions(
            policy=f"oracle:{world.epsilon}",
            group_size=GROUP_SIZE,
            max_steps=world.max_steps,
            seed=0,
            workers=num_workers,
            run=world.condition(name, "exact").run_id,
            iteration=JUDGED,
            oracle=True,
        ),
    )
    if done.failures:
        raise SystemExit("\n".join(done.failures))
    print(f"{name}: {done.num_trajectories} trajectories in {done.seconds:.0f} s", flush=True)
    return [task.spec for task in tasks]


def tables(rows: pl.DataFrame) -> str:
    """Return a table for each world, with a column for each kind of lists."""
    found = averages(rows)
    worlds = {row["environment"]: row for row in rows.select("environment").unique().to_dicts()}
    return "\n".join(
        f"## {name}\n\n"
        + by_condition(found, {lists: WORLDS[name].condition(name, lists) for lists in LISTS})
        for name in WORLDS
        if name in worlds
    )


if __name__ == "__main__":
    main()
