"""Small stores whose steps carry tokens, with credit beside them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from graphcredit.store import Store, create_store
from graphcredit.store.parquet.shards import fingerprint
from graphcredit.store.schema import (
    CONFIGURATION_KEY,
    CREDIT_COLUMNS,
    SCHEMA_VERSION,
    SCHEMA_VERSION_KEY,
    split_estimator_column,
)
from tests.worlds import step_table

Row = dict[str, Any]

_ADVANTAGE = "advantage"


def turn(
    prompt: Sequence[int],
    response: Sequence[int],
    logprobs: Sequence[float] | None = None,
    *,
    advantage: float | None = 1.0,
    **columns: Any,
) -> Row:
    """Return what is particular to one step: its tokens and its credit.

    Args:
        prompt: Token ids the policy was given.
        response: Token ids it sampled.
        logprobs: Of each sampled token; -1 for each by default.
        advantage: What the credit shard has for the step; None is null.
        columns: Step columns, for example `temperature` or `policy_version`.
    """
    return {
        "prompt_ids": list(prompt),
        "response_ids": list(response),
        "response_logprobs": [-1.0] * len(response) if logprobs is None else list(logprobs),
        "temperature": 1.0,
        "policy_version": "run-0",
        _ADVANTAGE: advantage,
        **columns,
    }


def episode(
    name: str, *turns: Row, task_id: str = "t0", success: bool = True, **columns: Any
) -> list[Row]:
    """Return the steps of one complete trajectory: states s0, s1, …"""
    steps = [
        {
            "task_id": task_id,
            "trajectory_id": name,
            "step_index": index,
            "state": f"s{index}",
            "next_state": f"s{index + 1}",
            **step,
            **columns,
        }
        for index, step in enumerate(turns)
    ]
    steps[-1] |= {"success": success, "terminated": success, "truncated": not success}
    return steps


def random_episodes(
    seed: int,
    num_trajectories: int,
    *,
    max_steps: int = 4,
    max_prompt: int = 12,
    max_response: int = 6,
    vocabulary: int = 32,
    group_size: int = 4,
) -> list[list[Row]]:
    """Return trajectories of random lengths, tokens, log-probabilities and advantages."""
    random = np.random.default_rng(seed)

    def draw() -> Row:
        prompt = random.integers(0, vocabulary, random.integers(1, max_prompt + 1))
        response = random.integers(0, vocabulary, random.integers(1, max_response + 1))
        logprobs = -random.exponential(size=len(response)).astype(np.float32)
        return turn(
            prompt.tolist(),
            response.tolist(),
            logprobs.tolist(),
            advantage=float(np.float32(random.normal())),
        )

    return [
        episode(
            f"trajectory-{number:03d}",
            *(draw() for _ in range(random.integers(1, max_steps + 1))),
            task_id=f"t{number // group_size}",
        )
        for number in range(num_trajectories)
    ]


def token_store(
    root: Path,
    trajectories: Sequence[Sequence[Row]] = (),
    *,
    num_shards: int = 1,
    column: str = "reach_advantage",
    row_group_rows: int = 1024,
    run_id: str = "r0",
    iteration: int = 0,
) -> Store:
    """Write steps and their credit.

    Args:
        root: Where the store is made, or added to.
        trajectories: Made by `episode`; two of them, worked by hand, where none are given.
        num_shards: Trajectory i goes into shard i modulo this.
        column: Name of the credit column that has the advantages.
        row_group_rows: Rows of a row group.
        run_id: The run.
        iteration: The iteration.
    """
    store = create_store(root)
    given = trajectories or two_episodes()
    directory = store.steps_dir(run_id, iteration)
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(num_shards):
        rows = [row for trajectory in given[number::num_shards] for row in trajectory]
        path = directory / f"w{number}-000000.parquet"
        pq.write_table(step_table(rows), path, row_group_size=row_group_rows)
        write_credit(store.root / "credit" / path.relative_to(store.root / "steps"), rows, column)
    stamp_credit(store, run_id, iteration)
    return store


def two_episodes() -> list[list[Row]]:
    """Return five steps: three of a success, two of a failure, 9 response tokens in all."""
    return [
        episode(
            "won",
            turn([1, 2, 3], [4, 5], [-0.1, -0.2], advantage=0.5),
            turn([1, 2, 3, 4, 5, 6], [7], [-0.3], advantage=1.0),
            turn([1, 2], [8, 9, 10], [-0.4, -0.5, -0.6], advantage=1.5),
        ),
        episode(
            "lost",
            turn([1, 2, 3], [11], [-0.7], advantage=-0.5),
            turn([1, 2, 3, 11], [12, 13], [-0.8, -0.9], advantage=-1.0),
            success=False,
        ),
    ]


def write_credit(path: Path, rows: Sequence[Mapping[str, Any]], column: str) -> None:
    """Write a credit shard by hand: the advantages of the rows, the rest null."""
    schema = pa.schema(
        [pa.field(c.name, c.type) for c in CREDIT_COLUMNS] + [pa.field(column, pa.float32())]
    )
    credit = [
        {
            "trajectory_id": row["trajectory_id"],
            "step_index": row["step_index"],
            column: row[_ADVANTAGE],
        }
        for row in rows
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(credit, schema=schema), path)


def stamp_credit(store: Store, run_id: str = "r0", iteration: int = 0, **options: Any) -> None:
    """Say in every credit shard that it was made of the step shards as they are now."""
    shards = store.shards(run_id, iteration)
    made_by = {**options, "steps": fingerprint(shard.path for shard in shards)}
    for path in [shard.credit_path for shard in shards if shard.credit_path.exists()]:
        table = pq.read_table(path, partitioning=None)
        estimators = {
            split[0] for name in table.column_names if (split := split_estimator_column(name))
        }
        metadata = {
            SCHEMA_VERSION_KEY: str(SCHEMA_VERSION),
            CONFIGURATION_KEY: json.dumps(dict.fromkeys(sorted(estimators), made_by)),
        }
        pq.write_table(table.replace_schema_metadata(metadata), path)
