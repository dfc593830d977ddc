"""How much a store's credit says of single steps, and whether estimators say the same.

The advantage of a step is the mean of its trajectory, which is credit for the outcome, and what is
over: its step part. That is the same for all estimators, however they add up their advantage.
"""

from dataclasses import asdict, dataclass
from typing import Any

from graphcredit.store.layout import AnyStore, Store, open_store
from graphcredit.store.parquet.snapshot import unchanged
from graphcredit.store.schema import ROUNDING, split_estimator_column
from graphcredit.store.sql.catalog import Connection, connect
from graphcredit.store.sql.views import identifier


@dataclass(frozen=True, kw_only=True, slots=True)
class Signal:
    """What the credit of one estimator says of steps."""

    estimator: str
    num_steps: int
    """Steps with its credit."""
    told_share: float
    """Share of them whose step part is not zero."""
    step_share: float
    """Σ|step part|, of that and Σ|mean of the trajectory|; 0 where all is zero."""
    agreement: dict[str, float | None]
    """Other estimator to the correlation of the step parts, over steps that both credit; None where
    one of them has none."""

    def as_json(self) -> dict[str, Any]:
        """Return everything, for programs."""
        return asdict(self)


def signals(
    store: AnyStore, *, run_id: str | None = None, iteration: int | None = None
) -> list[Signal]:
    """Return the signal of each estimator with credit, by name; none without credit.

    Args:
        store: A store, or its path.
        run_id: Only this run.
        iteration: Only this iteration.

    Raises:
        SchemaError: A file cannot be read.
    """
    opened = open_store(store)
    return unchanged(
        opened, lambda: _signals(opened, run_id, iteration), run_id=run_id, iteration=iteration
    )


def _signals(store: Store, run_id: str | None, iteration: int | None) -> list[Signal]:
    with connect(store, run_id=run_id, iteration=iteration, sql="FROM credit") as connection:
        names = _estimators(connection)
        if not names:
            return []
        connection.execute(f"CREATE TEMP TABLE step_parts AS {_parts(names)}")
        return [_signal(connection, name, names) for name in names]


def _estimators(connection: Connection) -> list[str]:
    columns = [row[0] for row in connection.execute("DESCRIBE credit").fetchall()]
    split = filter(None, map(split_estimator_column, columns))
    return sorted({name for name, part in split if part == "advantage"})


def _parts(names: list[str]) -> str:
    """Return SQL of the step part of each estimator, and of the mean of the trajectory."""
    of = "OVER (PARTITION BY run_id, iteration, trajectory_id)"
    columns: list[str] = []
    for name in names:
        advantage, mean = identifier(f"{name}_advantage"), identifier(f"mean {name}")
        columns += [
            f"avg({advantage}) {of} AS {mean}",
            f"if(abs({advantage} - {mean}) <= {ROUNDING} * max(abs({advantage})) {of}, 0, "
            f"{advantage} - {mean}) AS {identifier(name)}",
        ]
    return f"SELECT {', '.join(columns)} FROM credit"


def _signal(connection: Connection, name: str, names: list[str]) -> Signal:
    step, mean = identifier(name), identifier(f"mean {name}")
    others = [other for other in names if other != name]
    agree = [f"corr({step}, {identifier(other)})" for other in others]
    of = f"count({step}), avg(({step} <> 0)::INT), sum(abs({step})), sum(abs({mean}))"
    row = connection.execute(f"SELECT {', '.join([of, *agree])} FROM step_parts").fetchone()
    assert row is not None, "an aggregate has a row"
    number, told, of_steps, of_outcomes, *agreement = row
    total = (of_steps or 0.0) + (of_outcomes or 0.0)
    known = [None if value is None or value != value else float(value) for value in agreement]
    return Signal(
        estimator=name,
        num_steps=int(number),
        told_share=float(told or 0.0),
        step_share=float(of_steps / total) if total else 0.0,
        agreement=dict(zip(others, known, strict=True)),
    )
