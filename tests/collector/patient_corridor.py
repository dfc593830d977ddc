"""A collection of corridors in one worker that may stop for ever, for tests that kill it."""

import json
import os
import signal
import sys
from pathlib import Path

from graphcredit.collector.collection import collect
from graphcredit.collector.environments.base import Environment, Task, Transition
from graphcredit.collector.environments.registry import ENVIRONMENTS, EnvironmentKind
from graphcredit.collector.options import CollectOptions
from tests.collector.corridor import Corridor

_steps_left = int(sys.argv[4]) if len(sys.argv) > 4 else 0


class PatientCorridor(Corridor):
    """Waits for ever after so many steps of this process that were not remembered, or never."""

    def step(self, action: str) -> Transition:
        global _steps_left
        if _steps_left == 1:
            sys.stderr.write(f"waiting-in {os.getpid()}\n")
            sys.stderr.flush()
            signal.alarm(300)  # ends it where a test that fails has left it alone
            while True:
                signal.pause()
        _steps_left -= 1
        return super().step(action)


def _open(spec: str, cache_dir: Path, with_oracle: bool) -> Environment:
    del cache_dir, with_oracle
    return PatientCorridor(num_rooms=int(spec))


def _list_tasks(
    games: str | None, *, num_tasks: int, seed: int, games_dir: Path | None = None
) -> list[Task]:
    del num_tasks, seed, games_dir
    return [Task(environment="corridor", spec=spec) for spec in (games or "").split(",")]


# The worker imports this file, too, and gets the same arguments.
ENVIRONMENTS["corridor"] = EnvironmentKind(list_tasks=_list_tasks, open=_open)


def main(store: str, rooms: str, group_size: str) -> None:
    """Play corridors of some numbers of rooms and print the report."""
    report = collect(
        store,
        _list_tasks(rooms, num_tasks=0, seed=0),
        CollectOptions(
            policy="random",
            group_size=int(group_size),
            max_steps=6,
            workers=1,
            concurrency=5,
            games_dir=Path(store),
        ),
    )
    sys.stdout.write(json.dumps(report.as_json()) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:4])
