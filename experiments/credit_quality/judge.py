"""Judge every estimator under one condition, with a row for each game, estimator and part."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from experiments.credit_quality.conditions import MERGES, Condition
from experiments.credit_quality.games import kind_of
from experiments.credit_quality.logs import JUDGED, write_steps
from graphcredit.credit.audit.agreement import agreements
from graphcredit.credit.estimators.table import ESTIMATORS, Assigner, configure, estimator_named
from graphcredit.credit.inputs.table import MENTIONS
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from graphcredit.store.options import options_as_json
from graphcredit.store.sql.catalog import Connection, connect

PARTS: Mapping[str, str] = {"advantage": "total", "step_advantage": "step"}
"""Judged columns: the advantage that a trainer uses, and its step part alone."""

STATISTICS: tuple[str, ...] = ("over_all", "over_failed", "sign_agreement", "silent_share")
"""Fields of `Agreement`."""

_GROUPS = """
    SELECT task_id AS task, num_trajectories, success_rate, num_steps AS num_logged_steps
    FROM groups
"""


def estimators_of(condition: Condition) -> dict[str, Assigner]:
    """Return the judged estimators: all whose inputs the environment has.

    SAPO needs entities, which text games do not have.
    """
    if condition.option:
        return configure([condition.option.partition(".")[0]], [condition.option])
    has_entities = condition.environment == "search"
    return configure(row.name for row in ESTIMATORS if has_entities or MENTIONS not in row.inputs)


def judge(log: Store, condition: Condition) -> pl.DataFrame:
    """Return the rows of a condition, always the same to the last bit.

    Args:
        log: Store of the played games.
        condition: Selects the steps, and how they get their credit.
    """
    estimators = estimators_of(condition)
    with tempfile.TemporaryDirectory() as folder:
        store = write_steps(log, condition, Path(folder) / "store")
        settings = CreditSettings(
            estimators=estimators,
            merge=MERGES[condition.merge],
            graph_window=condition.window - 1,
        )
        assign_credit(store, settings, iteration=JUDGED)
        with connect(store, iteration=JUDGED) as connection:
            found = [row for name in estimators for row in _rows(connection, name)]
            groups = connection.sql(_GROUPS).pl()
    rows = pl.DataFrame(found, schema_overrides=dict.fromkeys(STATISTICS, pl.Float64))
    # The last digits of a sum depend on the order of the threads.
    rows = rows.with_columns(pl.col(STATISTICS).round(12))
    of_condition = {"condition": condition.name, **asdict(condition)}
    constants = [pl.lit(value).alias(name) for name, value in of_condition.items()]
    return rows.join(groups, on="task").drop("task").select(*constants, pl.all())


def made_by(condition: Condition, games: Sequence[str]) -> str:
    """Return the fingerprint of a condition's rows: all that determines them but the code."""
    chosen = {name: options_as_json(options) for name, options in estimators_of(condition).items()}
    decides = {"condition": asdict(condition), "estimators": chosen, "games": games}
    return json.dumps(decides, sort_keys=True)


def _rows(connection: Connection, estimator: str) -> list[dict[str, Any]]:
    written = estimator_named(estimator).writes
    return [
        {
            "kind": kind_of(_game(found.task_id)),
            "game": _game(found.task_id),
            "task": found.task_id,
            "estimator": estimator,
            "part": name,
            "num_steps": found.num_steps,
            "num_failed_steps": found.num_failed_steps,
            **{name: getattr(found, name) for name in STATISTICS},
        }
        for part, name in PARTS.items()
        if part in written
        for found in agreements(connection, f"{estimator}_{part}")
    ]


def _game(task_id: str) -> str:
    return task_id.partition("-")[2]
