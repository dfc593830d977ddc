"""Which estimators have assigned credit, and whose to look at first."""

from collections.abc import Iterable

from graphcredit.store.credit_marks.state import credit_states, doubts
from graphcredit.store.layout import Store
from graphcredit.store.parquet.snapshot import unchanged
from graphcredit.store.schema import split_estimator_column
from graphcredit.store.sql.views import identifier
from graphcredit.viewer.queries.views import columns

MOST_TELLING = (
    "analogy",
    "graphgpo",
    "rewardflow",
    "g2po",
    "gigpo",
    "sapo",
    "spo3",
    "hgpo",
    "rloo",
    "grpo",
)
"""Whose credit says most about single steps first: ways to the goal, then groups of equal states,
then one number for all steps of a trajectory."""


def most_telling_first(names: Iterable[str]) -> list[str]:
    """Return estimators in the order in which to offer them; those of others by name at the end."""
    rank = {name: number for number, name in enumerate(MOST_TELLING)}
    return sorted(names, key=lambda name: (rank.get(name, len(rank)), name))


def estimators(store: Store, *, run_id: str, iteration: int) -> list[str]:
    """Return the estimators whose advantages an iteration's credit has, the most telling first.

    Raises:
        SchemaError: A shard cannot be read.
    """
    found = columns(store, "credit", run_id=run_id, iteration=iteration)
    split = filter(None, map(split_estimator_column, found))
    return most_telling_first(name for name, part in split if part == "advantage")


def credit_doubts(store: Store, *, run_id: str, iteration: None, number: int) -> list[str]:
    """Return why credit of an iteration must not be relied on, a line per reason.

    Args:
        store: The store.
        run_id: The run.
        iteration: None: credit may be made of all iterations of the run, so a change in any counts.
        number: The iteration that is shown.

    Raises:
        SchemaError: A credit shard cannot be read.
    """
    return unchanged(
        store,
        lambda: doubts(credit_states(store, run_id=run_id, iteration=number)),
        run_id=run_id,
        iteration=iteration,
    )


def column(estimator: str, part: str) -> str:
    """Return the quoted name of an estimator's column, for SQL.

    Args:
        estimator: From `estimators`: a foreign writer may have called it anything.
        part: One of `schema.ESTIMATOR_PARTS`.
    """
    return identifier(f"{estimator}_{part}")
