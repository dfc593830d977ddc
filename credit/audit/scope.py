"""The tables that checks read: a store's views, and tables that are made of them once.

Beside the views of the catalog (only the audited run and iteration are in them) there are

    trajectories   as the view, complete or not, kept
    rollouts       the complete ones, with `first_state` (hash of the first state's text),
                   `first_node` (its node, where there is credit), `first_action` and
                   `second_state` (hashes), `path` (hash of all states,
                   actions and rewards), `clock` (hash of all times)
    groups         of complete trajectories: run_id, iteration, task_id, size, num_steps, num_won,
                   effective_size, lowest and highest return, is_even (they are equal)
    made_by        per run, iteration and estimator: stat_over, is_outdated (another version of its
                   formula made it)
    credited       credit of complete trajectories, with task_id, `is_finite` (all its numbers
                   are) and null where a number is not

and the macros `named` (a few ids, and how many more), `quote` (the start of a text), `off` (a mean,
or 0 where it is so small that rounding may have made it).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb

from graphcredit.credit.audit.thresholds import AuditThresholds
from graphcredit.credit.estimators.table import all_estimators, is_of_other_version
from graphcredit.store.layout import Store
from graphcredit.store.parquet.shards import open_parquet
from graphcredit.store.provenance.configuration import BALANCED_KEY, BALANCES, stated_configuration
from graphcredit.store.schema import ROUNDING, split_estimator_column
from graphcredit.store.sql.views import identifier

GROUP = "run_id, iteration, task_id"
TRAJECTORY = "run_id, iteration, trajectory_id"

_DISTANCES = ("goal_distance", "next_goal_distance")

NOTHING = f"SELECT {GROUP}, 0 AS number, 0.0 AS badness, '' AS detail FROM groups WHERE false"
"""SQL of a check that has nothing to look at."""

_SPACING = 2.0**-149
"""Of float32 near 0: credit is rounded by as much, however small it is."""

_MACROS = f"""
    CREATE TEMP MACRO named(ids) AS
        array_to_string(list_slice(list_sort(ids), 1, 3), ', ')
        || CASE WHEN len(ids) > 3 THEN ' and ' || (len(ids) - 3) || ' more' ELSE '' END;
    CREATE TEMP MACRO quote(words) AS
        '"' || CASE WHEN length(words) > 40 THEN words[:39] || '…' ELSE words END || '"';
    CREATE TEMP MACRO off(mean, largest) AS
        CASE WHEN abs(mean) > getvariable('max_mean_advantage') * largest + {_SPACING}
            THEN mean ELSE 0 END;
"""

_TABLES = f"""
    CREATE TEMP TABLE kept AS FROM trajectories;
    CREATE TEMP VIEW trajectories AS FROM kept;

    CREATE TEMP TABLE rollouts AS
    SELECT kept.*, first_state, first_action, second_state, first_node, path, clock
    FROM kept
    JOIN (
        SELECT run_id, iteration, trajectory_id,
            arg_min(hash(state), step_index) AS first_state,
            arg_min(hash(action), step_index) AS first_action,
            any_value(hash(state)) FILTER (step_index = 1) AS second_state,
            bit_xor(hash(step_index, state, action, next_state, reward)) AS path,
            bit_xor(hash(step_index, logged_at)) AS clock
        FROM steps GROUP BY ALL
    ) USING (run_id, iteration, trajectory_id)
    LEFT JOIN (
        SELECT run_id, iteration, trajectory_id, any_value(state_id) AS first_node
        FROM credit WHERE step_index = 0 GROUP BY ALL
    ) USING (run_id, iteration, trajectory_id)
    WHERE is_complete;

    CREATE TEMP TABLE groups AS
    SELECT run_id, iteration, task_id,
        count(*)::INTEGER AS size,
        sum(num_steps)::BIGINT AS num_steps,
        count_if(success)::INTEGER AS num_won,
        sum(num_steps) ** 2 / sum(num_steps ** 2) AS effective_size,
        min("return") AS lowest,
        max("return") AS highest,
        highest - lowest <= {ROUNDING} * greatest(abs(highest), abs(lowest)) AS is_even
    FROM rollouts GROUP BY ALL;
"""

_CREDITED = """
    CREATE TEMP TABLE credited AS
    SELECT credit.* REPLACE ({finite}), rollouts.task_id, rollouts.success AS won,
        {is_finite} AS is_finite
    FROM credit JOIN rollouts USING (run_id, iteration, trajectory_id)
    WHERE coalesce({columns}) IS NOT NULL
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """A connection with everything that the checks read, and what there is."""

    connection: duckdb.DuckDBPyConnection
    columns: tuple[str, ...]
    """Columns of `credit` that an estimator wrote."""
    balanced: Mapping[str, str]
    """Those of them whose mean is 0, and over what: see `BALANCES`."""
    has_credit: bool
    """Whether any complete trajectory has credit."""
    has_truth: bool
    """Whether any step has true distances to the goal."""

    @property
    def advantages(self) -> list[str]:
        """The columns that trainers use: not the parts that they are sums of."""
        return self.columns_of("advantage")

    def columns_of(self, *parts: str) -> list[str]:
        """Return the columns of some parts, for example `step_advantage`."""
        splits = {name: split_estimator_column(name) for name in self.columns}
        return [name for name, split in splits.items() if split and split[1] in parts]

    def balanced_over(self, *parts: str) -> list[str]:
        """Return the columns whose mean is 0 over some parts, for example `states`."""
        return [name for name, over in self.balanced.items() if over in parts]

    def has(self, need: str) -> bool:
        """Return whether there is what a check needs."""
        return need == "steps" or self.has_credit

    def any(self, rows: str) -> bool:
        """Return whether a FROM clause has any row."""
        return _any(self.connection, rows)


def prepare(
    connection: duckdb.DuckDBPyConnection,
    store: Store,
    run_id: str | None,
    iteration: int | None,
    thresholds: AuditThresholds,
) -> Scope:
    """Make the tables of the audit.

    Args:
        connection: From `catalog.connect`, for the same run and iteration.
        store: The store, for the metadata of its credit shards.
        run_id: The audited run, or None.
        iteration: The audited iteration, or None.
        thresholds: SQL reads them with `getvariable`.
    """
    for name, value in thresholds:
        connection.execute(f"SET VARIABLE {name} = {value!r}")
    connection.execute(_MACROS)
    connection.execute(_TABLES)
    ways = _write_made_by(connection, store, run_id, iteration)
    names = [str(row[0]) for row in connection.execute("DESCRIBE credit").fetchall()]
    columns = tuple(name for name in names if split_estimator_column(name))
    numbers = [identifier(name) for name in (*_DISTANCES, *columns)]
    connection.execute(
        _CREDITED.format(
            columns=", ".join(map(identifier, ("state_id", *columns))),
            finite=", ".join(f"{finite(name)} AS {name}" for name in numbers),
            is_finite=" AND ".join(f"coalesce(isfinite({name}), true)" for name in numbers),
        )
    )
    return Scope(
        connection=connection,
        columns=columns,
        balanced=_balanced(columns, ways),
        has_credit=_any(connection, "FROM credited"),
        has_truth=_any(
            connection, "FROM steps WHERE isfinite(oracle_distance - next_oracle_distance)"
        ),
    )


def finite(number: str) -> str:
    """Return SQL of a number, or null where it is NaN or infinite, as in a store made long ago."""
    return f"CASE WHEN isfinite({number}) THEN {number} END"


def _any(connection: duckdb.DuckDBPyConnection, rows: str) -> bool:
    return bool(connection.execute(f"SELECT 1 {rows} LIMIT 1").fetchall())


def _write_made_by(
    connection: duckdb.DuckDBPyConnection, store: Store, run_id: str | None, iteration: int | None
) -> Mapping[str, Any]:
    """Make the table `made_by`, and return one configuration of each estimator."""
    texts: dict[tuple[str, int, str], set[str]] = {}
    for shard in store.shards(run_id, iteration):
        if not shard.credit_path.exists():
            continue
        with open_parquet(shard.credit_path) as file:
            configuration = stated_configuration(file.schema_arrow, shard.credit_path)
        for estimator, said in configuration.items():
            key = (shard.run_id, shard.iteration, estimator)
            texts.setdefault(key, set()).add(json.dumps(said, sort_keys=True))
    connection.execute(
        "CREATE TEMP TABLE made_by (run_id VARCHAR, iteration INTEGER, estimator VARCHAR, "
        "stat_over VARCHAR, is_outdated BOOLEAN)"
    )
    made_by = {key: [_object(json.loads(text)) for text in sorted(of)] for key, of in texts.items()}
    rows = [
        (*key, _stat_over(said[0]), any(is_of_other_version(key[2], each) for each in said))
        for key, said in made_by.items()
    ]
    if rows:
        connection.executemany("INSERT INTO made_by VALUES (?, ?, ?, ?, ?)", rows)
    return {estimator: said[0] for (_, _, estimator), said in made_by.items()}


def _object(said: Any) -> dict[str, Any]:
    """Return what another program may have written as something else."""
    return said if isinstance(said, dict) else {}


def _balanced(columns: Iterable[str], made_by: Mapping[str, Any]) -> dict[str, str]:
    """Return the columns whose mean is 0, by what their file says, or the estimator's row."""
    rows = all_estimators()
    splits = {name: split for name in columns if (split := split_estimator_column(name))}
    over: dict[str, Any] = {}
    for name, (estimator, part) in splits.items():
        default = rows[estimator].balanced if estimator in rows else {}
        over[name] = _object(made_by.get(estimator, {}).get(BALANCED_KEY, default)).get(part)
    return {name: what for name, what in over.items() if what in BALANCES}


def _stat_over(made_by: Mapping[str, Any]) -> str:
    return _object(made_by.get("options")).get("stat_over", "trajectories")
