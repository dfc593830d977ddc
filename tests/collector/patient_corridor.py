"""A collection of corridors in one worker that may stop for ever, for tests that kill it."""

import json
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from graphcredit.collector import collection
from graphcredit.collector.environments.base import Environment, Task, Transition
from graphcredit.collector.environments.registry import ENVIRONMENTS, EnvironmentKind
from graphcredit.collector.options import CollectOptions
from graphcredit.collector.policies.scripted import RandomPolicy
from tests.collector.corridor import Corridor

PATIENCE = "CORRIDOR_PATIENCE"
"""Environment variable: after so many steps a worker waits for ever; 0 for never."""
_steps_left = int(os.environ.get(PATIENCE, "0"))


@dataclass(frozen=True, kw_only=True, slots=True)
class PatientPolicy(RandomPolicy):
    """Plays at random; a worker that gets it imports this file, and knows its environment."""


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


ENVIRONMENTS["corridor"] = EnvironmentKind(list_tasks=_list_tasks, open=_open)


def main(store: str, rooms: str, group_size: str) -> None:
    """Play corridors of some numbers of rooms and print the report."""
    with patch.object(collection, "parse_policy", lambda *_: PatientPolicy()):
        report = collection.collect(
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
