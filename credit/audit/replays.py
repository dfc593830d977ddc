"""Agreement of credit with Q - V, where decisions were replayed.

A decision *matters* if |Q - V| is above 2 standard errors. By chance some decisions seem to matter
that do not, so the share that is expected if none did stands beside it. Each replay, by one policy
with one number of plays, is judged by itself. Intervals are of 95 %, from drawing tasks with
replacement, because decisions of one task share plays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import duckdb
import numpy as np

from graphcredit.credit.audit.agreement import agreements
from graphcredit.credit.audit.chance import ERRORS, expected_by_chance
from graphcredit.store.files.parse import parse_object
from graphcredit.store.layout import Store
from graphcredit.store.parquet.snapshot import unchanged
from graphcredit.store.plural import counted
from graphcredit.store.schema import split_estimator_column
from graphcredit.store.sql.catalog import connect
from graphcredit.store.sql.views import identifier

_DRAWS = 2000
_TABLE = "judged_replay"
_JUDGED = ("advantage", "step_advantage", "progress")
_MATTERS = f"abs(q_minus_v) > {ERRORS} * advantage_se"


@dataclass(frozen=True, kw_only=True, slots=True)
class IntervalEstimate:
    """A number with its interval; without one where a single task has it."""

    value: float
    low: float | None
    high: float | None

    def __str__(self) -> str:
        interval = "" if self.low is None else f" ({self.low:.2f} to {self.high:.2f})"
        return f"{self.value:.2f}{interval}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnJudgement:
    """How a credit column follows Q - V."""

    column: str
    num_decisions: int
    """Replayed decisions with this credit."""
    num_groups: int
    """Groups with a rank correlation: Q - V is not the same in all of their decisions."""
    rank_correlation: IntervalEstimate | None
    """Spearman's, in each group by itself; the mean over groups. Noise in Q - V lowers it."""
    num_deciding: int
    """Decisions with this credit that matter."""
    sign_agreement: IntervalEstimate | None
    """The share of these whose credit has the sign of Q - V; no credit never agrees."""

    @property
    def words(self) -> str:
        """Its numbers in words."""
        return (
            f"rank correlation with Q - V {_or_none(self.rank_correlation)}, "
            f"right sign where it matters {_or_none(self.sign_agreement)}"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplayJudgement:
    """What a replay says about decisions and their credit."""

    settings: Mapping[str, Any]
    """Who played on, and how."""
    is_acting_policy: bool | None
    """Whether it is who acted; None if the log does not say, or not everywhere the same."""
    num_tasks: int
    num_decisions: int
    """Decisions with Q - V."""
    num_failed: int
    """Decisions that could not be replayed; no number counts them."""
    matters: IntervalEstimate | None
    """Share of the decisions that matter."""
    by_chance: float
    """Share that would seem to matter if none did."""
    spread: float
    """Root mean square of Q - V, without the noise of the plays."""
    columns: tuple[ColumnJudgement, ...]

    @property
    def name(self) -> str:
        """Who played on, and how often."""
        return f"{self.settings.get('policy')}, {self.settings.get('num_plays')} plays"

    def as_json(self) -> dict[str, Any]:
        """Return everything, for programs."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return it in words, a line for each credit column at the end."""
        failed = f"; {self.num_failed:,} not reproducible" if self.num_failed else ""
        if self.matters is None:
            return [f"no decision was replayed{failed}"]
        share = _percent(self.matters)
        width = max((len(each.column) for each in self.columns), default=0)
        return [
            f"{share} of {counted(self.num_decisions, 'decision')} in "
            f"{counted(self.num_tasks, 'task')} matter: "
            f"|Q - V| is above {ERRORS:g} standard errors{failed}",
            f"if none did, {self.by_chance:.1%} would seem to by chance; Q - V without noise: "
            f"{self.spread:.3f} (root mean square)",
            *(f"{each.column:<{width}}  {each.words}" for each in self.columns),
        ]


def judge_replay(
    store: Store, run_id: str, iteration: int, settings: str
) -> ReplayJudgement | None:
    """Judge one replay of an iteration, by its settings; None if the store has no row of it."""

    def read() -> ReplayJudgement | None:
        with connect(store, run_id=run_id, iteration=iteration) as connection:
            return next((j for s, j in _judged(connection) if s == settings), None)

    return unchanged(store, read, run_id=run_id, iteration=iteration)


def judge_replays(connection: duckdb.DuckDBPyConnection) -> list[ReplayJudgement]:
    """Judge every replay of a store.

    Args:
        connection: With the views of one store, from `catalog.connect`.
    """
    return [judgement for _, judgement in _judged(connection)]


def _judged(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, ReplayJudgement]]:
    distinct = "SELECT DISTINCT settings FROM replay ORDER BY settings"
    replays = connection.execute(distinct).fetchall()
    if not replays:
        return []
    names = [str(row[0]) for row in connection.execute("DESCRIBE credit").fetchall()]
    columns = [
        name for name in names if (split := split_estimator_column(name)) and split[1] in _JUDGED
    ]
    return [(str(settings), _judge(connection, settings, columns)) for (settings,) in replays]


def _judge(
    connection: duckdb.DuckDBPyConnection, settings: str, columns: Sequence[str]
) -> ReplayJudgement:
    credit = "".join(
        f", CASE WHEN isfinite({name}) THEN {name} END AS {name}"
        for name in map(identifier, columns)
    )
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE {_TABLE} AS
        SELECT run_id, iteration, trajectory_id, task_id, step_index, failure, is_acting_policy,
            advantage AS q_minus_v, advantage_se, q, q_plays, v, v_plays {credit}
        FROM replayed WHERE settings = ?
        """,
        [settings],
    )
    failed, acting = connection.execute(
        f"""
        SELECT count(failure),
            CASE WHEN count(DISTINCT is_acting_policy) = 1 THEN any_value(is_acting_policy) END
        FROM {_TABLE}
        """
    ).fetchall()[0]
    rows = connection.execute(
        f"""
        SELECT task_id, {_MATTERS}, q_plays, v_plays, q, v, q_minus_v FROM {_TABLE}
        WHERE failure IS NULL ORDER BY ALL
        """
    ).fetchall()
    tasks = [str(row[0]) for row in rows]
    plays = [(int(row[2]), int(row[3]), float(row[4]), float(row[5])) for row in rows]
    return ReplayJudgement(
        settings=parse_object(settings),
        is_acting_policy=acting,
        num_tasks=len(set(tasks)),
        num_decisions=len(rows),
        num_failed=int(failed),
        matters=_ratio(tasks, [float(row[1]) for row in rows], [1.0] * len(rows)),
        by_chance=expected_by_chance(plays),
        spread=_spread(plays),
        columns=tuple(_column(connection, name) for name in columns),
    )


def _column(connection: duckdb.DuckDBPyConnection, column: str) -> ColumnJudgement:
    groups = agreements(connection, column, truth="q_minus_v", source=_TABLE)
    ranked = [group for group in groups if group.over_all is not None]
    name = identifier(column)
    rows = connection.execute(
        f"""
        SELECT task_id, count(*), count_if(sign({name}) = sign(q_minus_v))
        FROM {_TABLE} WHERE failure IS NULL AND {name} IS NOT NULL AND {_MATTERS}
        GROUP BY task_id ORDER BY task_id
        """
    ).fetchall()
    return ColumnJudgement(
        column=column,
        num_decisions=sum(group.num_steps for group in groups),
        num_groups=len(ranked),
        rank_correlation=_ratio(
            [group.task_id for group in ranked],
            [group.over_all or 0.0 for group in ranked],
            [1.0] * len(ranked),
        ),
        num_deciding=sum(row[1] for row in rows),
        sign_agreement=_ratio(
            [row[0] for row in rows],
            [float(row[2]) for row in rows],
            [float(row[1]) for row in rows],
        ),
    )


def _ratio(
    tasks: Sequence[str], numbers: Sequence[float], weights: Sequence[float]
) -> IntervalEstimate | None:
    """Return Σ numbers / Σ weights with its interval over tasks; None if there is nothing."""
    if not tasks:
        return None
    names = sorted(set(tasks))
    sums = np.zeros((len(names), 2))
    np.add.at(sums, np.searchsorted(names, tasks), np.stack([numbers, weights], axis=1))
    total, weight = sums.sum(axis=0)
    if len(names) == 1:
        return IntervalEstimate(value=float(total / weight), low=None, high=None)
    drawn = np.random.default_rng(0).integers(len(names), size=(_DRAWS, len(names)))
    both = sums[drawn].sum(axis=1)
    low, high = np.quantile(both[:, 0] / both[:, 1], (0.025, 0.975))
    return IntervalEstimate(value=float(total / weight), low=float(low), high=float(high))


def _spread(plays: Sequence[tuple[int, int, float, float]]) -> float:
    """Return the root mean square of Q - V, less what the plays' noise adds; 0 if that is more."""
    if not plays:
        return 0.0
    squares = [
        (q - v) ** 2 - _noise(q, q_plays, is_exact=q_plays == 1) - _noise(v, v_plays)
        for q_plays, v_plays, q, v in plays
    ]
    return float(np.sqrt(max(0.0, float(np.mean(squares)))))


def _noise(share: float, plays: int, *, is_exact: bool = False) -> float:
    """Return the estimate without bias of a share's variance; one play cannot estimate it."""
    return 0.0 if is_exact or plays == 1 else share * (1 - share) / (plays - 1)


def _percent(estimate: IntervalEstimate) -> str:
    interval = "" if estimate.low is None else f" ({estimate.low:.1%} to {estimate.high:.1%})"
    return f"{estimate.value:.1%}{interval}"


def _or_none(estimate: IntervalEstimate | None) -> str:
    return "unknown" if estimate is None else str(estimate)
