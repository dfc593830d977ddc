"""One run: an arm learns from a warm start, and is judged on boards that it never saw."""

import copy
import time
from typing import Any

import numpy as np
import polars as pl
import torch

from experiments.episodes import Floats, Ints, advantages
from experiments.sokoban.play import sample, step_table
from experiments.sokoban.policy import probabilities, success_of
from experiments.sokoban.settings import (
    EVALUATE_EVERY,
    GROUPS,
    ITERATIONS,
    TUNING_WARMS,
    Cell,
    boards_of,
    read_arm,
)
from experiments.sokoban.update import Learner
from experiments.sokoban.warm import warm_start

_MAY_LACK: tuple[str, ...] = ("training", "with_credit", "size_of_credit")
"""Columns that some rows lack."""


def learn(cell: Cell, iterations: int = ITERATIONS) -> pl.DataFrame:
    """Return a row for the warm start and for every `EVALUATE_EVERY` iterations.

    `training` and `held_out` are exact success on the 256 boards (only at both ends) and on 64
    others: those for tuning where the warm start is one for tuning, else the unseen ones.
    `env_steps` and `seconds` were spent so far. `with_credit` and `size_of_credit` are the share of
    steps with an advantage that is not 0, and the mean of |A| over all steps, since the row before.
    """
    torch.set_num_threads(1)
    name, options, with_lists = read_arm(cell.arm)
    sets = boards_of(cell.size)
    boards = sets["training"]
    held_out = sets["tuning" if cell.warm in TUNING_WARMS else "unseen"]
    policy = copy.deepcopy(warm_start(cell.size, cell.warm))
    learner = Learner.of(policy, cell.rate)
    rng = np.random.default_rng([cell.warm, 4])
    rows: list[dict[str, Any]] = []
    seen: list[Floats] = []
    num_steps, started = 0, time.process_time()
    for iteration in range(iterations + 1):
        is_end = iteration in (0, iterations)
        if iteration % EVALUATE_EVERY == 0 or is_end:
            rows.append(
                {"size": cell.size, "arm": cell.arm, "rate": cell.rate, "warm": cell.warm}
                | {"iteration": iteration, "env_steps": num_steps}
                | {"seconds": time.process_time() - started}
                | {"training": float(success_of(policy, boards).mean()) if is_end else None}
                | {"held_out": float(success_of(policy, held_out).mean())}
                | _of_credit(seen)
            )
            seen = []
        if iteration == iterations:
            break
        chosen = boards_played(cell, iteration, len(boards.names))
        episodes = sample(boards, chosen, lambda at: probabilities(policy, boards, at), rng)
        steps = step_table(boards, episodes, with_lists=with_lists)
        credit = advantages(steps, {name: options})[name]
        learner.update(boards, episodes, credit, rng)
        seen.append(credit)
        num_steps += len(credit)
    return pl.DataFrame(rows, schema_overrides=dict.fromkeys(_MAY_LACK, pl.Float64))


def boards_played(cell: Cell, iteration: int, num_boards: int) -> Ints:
    """Return the boards of an iteration, the same for all arms; a pass plays each board once."""
    number, part_of_pass = divmod(iteration, num_boards // GROUPS)
    order = np.random.default_rng([cell.warm, 5, number]).permutation(num_boards)
    return order[part_of_pass * GROUPS : (part_of_pass + 1) * GROUPS]


def _of_credit(seen: list[Floats]) -> dict[str, float | None]:
    if not seen:
        return {"with_credit": None, "size_of_credit": None}
    credit = np.concatenate(seen)
    return {
        "with_credit": float((credit != 0).mean()),
        "size_of_credit": float(np.abs(credit).mean()),
    }
