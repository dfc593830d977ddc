"""Queries about the estimators that assigned credit, and their order on the pages."""

from collections.abc import Iterable

from graphcredit.store.layout import Store
from graphcredit.store.parquet.shards import open_parquet
from graphcredit.store.parquet.snapshot import unchanged
from graphcredit.store.provenance.configuration import configuration_of
from graphcredit.store.provenance.explained import Explanation, explanation_of
from graphcredit.store.provenance.freshness import credit_freshness, doubts
from graphcredit.store.schema import split_estimator_column
from graphcredit.store.sql.views import identifier
from graphcredit.viewer.queries.views import columns

MOST_TELLING = (
    "reach",
    "graphgpo",
    "graft",
    "milegpo",
    "rewardflow",
    "g2po",
    "gigpo",
    "sapo",
    "spo3",
    "turn_credit",
    "turn_rloo",
    "hgpo",
    "discounted",
    "rloo",
    "grpo",
)
"""Estimators by how much their credit distinguishes single steps: first those that use paths to the
goal, then those that group equal states, then those with one number per trajectory."""


def most_telling_first(names: Iterable[str]) -> list[str]:
    """Return estimators in the order of `MOST_TELLING`; unknown ones come last, by name."""
    rank = {name: number for number, name in enumerate(MOST_TELLING)}
    return sorted(names, key=lambda name: (rank.get(name, len(rank)), name))


def estimators(store: Store, *, run_id: str, iteration: int | None) -> list[str]:
    """Return the estimators with advantages in the credit, the most telling first."""
    credit_columns = columns(store, "credit", run_id=run_id, iteration=iteration)
    split = filter(None, map(split_estimator_column, credit_columns))
    return most_telling_first(name for name, part in split if part == "advantage")


def credit_doubts(store: Store, *, run_id: str, iteration: None, number: int) -> list[str]:
    """Return the reasons not to rely on credit of the iteration `number`, one line each.

    The query is about the whole run: credit may be made of all of its iterations.
    """
    return unchanged(
        store,
        lambda: doubts(credit_freshness(store, run_id=run_id, iteration=number)),
        run_id=run_id,
        iteration=iteration,
    )


def column(estimator: str, part: str) -> str:
    """Return the quoted name of an estimator's column, for SQL."""
    return identifier(f"{estimator}_{part}")


def explanation(store: Store, *, run_id: str, iteration: int, estimator: str) -> Explanation | None:
    """Return how an iteration's credit by an estimator explains itself.

    The shards of an iteration say the same, or their credit is mixed, which the pages warn of. None
    for credit of another program, or of an older version.
    """
    for shard in store.shards(run_id, iteration):
        if not shard.credit_path.exists():
            continue
        with open_parquet(shard.credit_path, whole=False) as file:
            said = configuration_of(file.schema_arrow).get(estimator)
        if isinstance(said, dict):
            return explanation_of(said)
    return None
