"""Which estimators have assigned credit."""

from graphcredit.store.catalog import run_trusted_query
from graphcredit.store.layout import Store
from graphcredit.store.schema import split_estimator_column


def estimators(store: Store, *, run_id: str, iteration: int) -> list[str]:
    """Return the estimators whose advantages an iteration's credit has, sorted.

    Raises:
        SchemaError: A shard cannot be read.
    """
    described = run_trusted_query(
        store, "SELECT column_name FROM (DESCRIBE credit)", run_id=run_id, iteration=iteration
    ).table
    split = [split_estimator_column(name) for name in described["column_name"].to_pylist()]
    return sorted(name for name, part in filter(None, split) if part == "advantage")


def column(estimator: str, part: str) -> str:
    """Return the quoted name of an estimator's column, for SQL.

    Args:
        estimator: From `estimators`: a foreign writer may have called it anything.
        part: One of `schema.ESTIMATOR_PARTS`.
    """
    return '"' + f"{estimator}_{part}".replace('"', '""') + '"'
