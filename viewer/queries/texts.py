"""Search in all texts of a store."""

from dataclasses import dataclass
from typing import Any

from graphcredit.store.layout import Store
from graphcredit.store.parquet.snapshot import unchanged
from graphcredit.store.sql.catalog import connect

MOST_FOUND = 50
"""Most rollouts of which a place is shown."""

TEXTS = ("action", "thought", "observation", "state", "next_state")
"""Columns of steps that are searched, in the order in which a place is shown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """Where some words stand."""

    num_steps: int
    num_rollouts: int
    num_succeeded: int | None
    """Of these rollouts; None where nothing says who did."""
    places: list[dict[str, Any]]
    """`run_id, iteration, task_id, trajectory_id, step_index, num_steps` and the `TEXTS` of the
    first step of each rollout, at most `MOST_FOUND`; `num_steps` of the rollout have the words."""


def found_texts(
    store: Store, *, run_id: str | None, iteration: int | None, words: str, success: bool | None
) -> Found:
    """Return where words stand, whatever the case, in rollouts with an outcome; None for any."""
    contained = " OR ".join(f"contains(lower({name}), lower($1))" for name in TEXTS)
    key = "run_id, iteration, task_id, trajectory_id"
    sql = f"""
        WITH place AS MATERIALIZED (SELECT {key}, step_index FROM steps WHERE {contained}),
        ended AS (SELECT {key}, bool_or(success) AS success FROM steps GROUP BY ALL),
        rollout AS MATERIALIZED (
            SELECT {key}, success, min(step_index) AS step_index, count(*) AS num_steps
            FROM place JOIN ended USING ({key})
            WHERE $2 IS NULL OR success = $2 GROUP BY ALL
        ),
        counted AS (
            SELECT sum(num_steps)::BIGINT AS num_found, count(*) AS num_rollouts,
                if(count(success) > 0, count_if(success), NULL)::BIGINT AS num_succeeded
            FROM rollout
        ),
        shown AS (FROM rollout ORDER BY {key} LIMIT {MOST_FOUND})
        SELECT shown.* EXCLUDE (success), {", ".join(TEXTS)}, counted.*
        FROM shown JOIN steps USING ({key}, step_index), counted
        ORDER BY {key}
    """

    def read() -> list[dict[str, Any]]:
        with connect(store, run_id=run_id, iteration=iteration, sql=sql) as views:
            return views.sql(sql, params=[words, success]).to_arrow_table().to_pylist()

    rows = unchanged(store, read, run_id=run_id, iteration=iteration)
    first = rows[0] if rows else dict.fromkeys(("num_found", "num_rollouts", "num_succeeded"), 0)
    return Found(
        num_steps=first["num_found"],
        num_rollouts=first["num_rollouts"],
        num_succeeded=first["num_succeeded"],
        places=rows,
    )
