"""Rollouts, credit and training as three processes that meet in a store.

    python examples/pipeline.py run DIR

starts the three, prints their process ids, and starts again what is killed. Kill any of them, also
with `kill -9`: the policies come out the same. By hand, each in its own terminal, in any order:

    python examples/pipeline.py rollouts DIR
    python examples/pipeline.py credit DIR
    python examples/pipeline.py train DIR

- `rollouts` plays iteration n with policy n. Each trajectory is recorded whole or not at all. Its
  name and its random numbers depend on its place alone, so what a kill cut off is played again and
  what is in the store is skipped.
- `credit` waits until iteration n has all its trajectories, and assigns their credit.
- `train` waits for credit that is made of just these.
  Then it writes policy n + 1, under its name only when it is complete.

The world is a small house and the policy a table of preferences, so that nothing else is needed.
For a language model, `graphcredit collect`, `graphcredit credit --new` in a loop, and `graphcredit
train` stand in their places.
"""

import argparse
import json
import math
import random
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import graphcredit
from graphcredit.collector import StepRecorder
from graphcredit.store import Store, connect, create_store, read_steps
from graphcredit.store.files.atomic import atomic_path
from graphcredit.store.parquet.snapshot import unchanged
from graphcredit.store.provenance.freshness import credit_freshness

RUN, ESTIMATOR = "house", "graphgpo"
ITERATIONS, GROUP_SIZE, MAX_STEPS = 4, 8, 12
LEARNING_RATE = 0.5

HOUSE = {
    "attic": {"down": "hall"},
    "hall": {"up": "attic", "north": "kitchen", "down": "cellar"},
    "cellar": {"up": "hall", "north": "cellar"},
    "kitchen": {"south": "hall", "north": "garden"},
}
"""Room to where each action leads; the garden is the goal."""

STARTS = ("attic", "cellar")
"""The tasks: find the garden from here."""

Policy = dict[str, dict[str, float]]
"""Room to action to preference; 0 where it has none."""


def rollouts(folder: Path, seconds_per_step: float) -> None:
    """Play every iteration as soon as its policy is there."""
    store = create_store(folder / "store")
    for iteration in range(ITERATIONS):
        while (policy := read_policy(folder, iteration)) is None:
            time.sleep(0.05)
        if len(trajectories(store, iteration)) < len(STARTS) * GROUP_SIZE:
            with StepRecorder(store, run_id=RUN, iteration=iteration, worker_id="w0") as recorder:
                for start in STARTS:
                    for number in range(GROUP_SIZE):
                        play(recorder, policy, start, f"{start}-{number}", seconds_per_step)


def play(
    recorder: StepRecorder, policy: Policy, start: str, name: str, seconds_per_step: float
) -> None:
    """Play one trajectory and record it whole."""
    rng = random.Random(f"{name} {json.dumps(policy)}")
    room = start
    with recorder.together() as group:
        trajectory = group.trajectory(task_id=f"from the {start}", trajectory_id=name)
        for number in range(MAX_STEPS):
            time.sleep(seconds_per_step)
            actions = sorted(HOUSE[room])
            weights = [math.exp(policy.get(room, {}).get(action, 0.0)) for action in actions]
            (action,) = rng.choices(actions, weights)
            state, room = room, HOUSE[room][action]
            won, is_last = room == "garden", number == MAX_STEPS - 1
            trajectory.log(
                state=state,
                action=action,
                next_state=room,
                reward=float(won),
                terminated=won,
                truncated=is_last and not won,
                success=won if won or is_last else None,
            )
            if won:
                break


def credit(folder: Path) -> None:
    """Assign the credit of every iteration as soon as it has all its trajectories."""
    store = create_store(folder / "store")
    for iteration in range(ITERATIONS):
        while len(trajectories(store, iteration)) < len(STARTS) * GROUP_SIZE:
            time.sleep(0.05)
        graphcredit.credit(store, estimators=ESTIMATOR, run=RUN, iteration=iteration, new=True)
        print(f"credit of iteration {iteration}", flush=True)


def train(folder: Path) -> None:
    """Make every policy from the one before and the credit of what it played."""
    store = create_store(folder / "store")
    for iteration in range(ITERATIONS):
        if read_policy(folder, iteration + 1) is not None:
            continue
        while (steps := unchanged(store, lambda n=iteration: credited(store, n))) is None:
            time.sleep(0.1)
        policy = read_policy(folder, iteration)
        assert policy is not None
        write_policy(folder, iteration + 1, improved(policy, steps))
        won = sum(state == "kitchen" and action == "north" for state, action, _ in steps)
        print(f"iteration {iteration}: {won} of {len(STARTS) * GROUP_SIZE} won", flush=True)


def credited(store: Store, iteration: int) -> list[tuple[str, str, float]] | None:
    """Return state, action and advantage of each step; None until all are there and credited."""
    if len(trajectories(store, iteration)) < len(STARTS) * GROUP_SIZE:
        return None
    found = credit_freshness(store, run_id=RUN, iteration=iteration)
    if [s.state for s in found if s.estimator == ESTIMATOR] != ["current"]:
        return None
    with connect(store) as connection:
        return connection.execute(
            f"SELECT state, action, {ESTIMATOR}_advantage FROM enriched WHERE run_id = ? AND "
            "iteration = ? ORDER BY trajectory_id, step_index",
            [RUN, iteration],
        ).fetchall()


def trajectories(store: Store, iteration: int) -> set[str]:
    """Return the trajectories of an iteration that are in shards."""
    tables = read_steps(store, columns=["trajectory_id"], run_id=RUN, iteration=iteration)
    return {name for table in tables for name in table["trajectory_id"].to_pylist()}


def improved(policy: Policy, steps: list[tuple[str, str, float]]) -> Policy:
    """Return a policy that prefers actions by their mean advantage more than the given one."""
    found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for state, action, advantage in steps:
        found[state, action].append(advantage)
    made = {room: dict(preferences) for room, preferences in policy.items()}
    for (state, action), advantages in sorted(found.items()):
        preferences = made.setdefault(state, {})
        change = LEARNING_RATE * math.fsum(advantages) / len(advantages)
        preferences[action] = preferences.get(action, 0.0) + change
    return made


def read_policy(folder: Path, number: int) -> Policy | None:
    """Return a policy; the first one has no preferences. None if it is not there yet."""
    if number == 0:
        return {}
    path = folder / f"policy-{number}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def write_policy(folder: Path, number: int, policy: Policy) -> None:
    """Write a policy; the file appears when it is complete."""
    with atomic_path(folder / f"policy-{number}.json") as temporary:
        temporary.write_text(json.dumps(policy, indent=2) + "\n", encoding="utf-8")


def run(folder: Path, seconds_per_step: float) -> None:
    """Start the three processes, and start again those that are killed, until the training ends."""
    me = [sys.executable, __file__]
    commands = {
        "rollouts": [*me, "rollouts", str(folder), "--seconds-per-step", str(seconds_per_step)],
        "credit": [*me, "credit", str(folder)],
        "train": [*me, "train", str(folder)],
    }
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        while "train" not in processes or processes["train"].poll() != 0:
            for name, command in commands.items():
                ended = processes[name].poll() if name in processes else -1
                if ended is not None and ended > 0:
                    raise SystemExit(f"{name} failed")
                if ended is not None and ended < 0:
                    processes[name] = subprocess.Popen(command)
                    print(f"{name}: process {processes[name].pid}", flush=True)
            time.sleep(0.1)
    finally:
        for process in processes.values():
            process.terminate()
            process.wait()


def main() -> None:
    """Run one of the processes, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["run", "rollouts", "credit", "train"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds-per-step", type=float, default=0.01, help="a model takes time")
    arguments = parser.parse_args()
    if arguments.what == "train":
        train(arguments.folder)
    elif arguments.what == "credit":
        credit(arguments.folder)
    elif arguments.what == "rollouts":
        rollouts(arguments.folder, arguments.seconds_per_step)
    else:
        run(arguments.folder, arguments.seconds_per_step)


if __name__ == "__main__":
    main()
