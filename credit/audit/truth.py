"""The audit's numbers of agreement with the truth, where the environment knows it."""

from collections.abc import Mapping

from graphcredit.credit.audit.agreement import MeanAgreement, mean_agreement
from graphcredit.credit.audit.scope import TRAJECTORY, Scope, finite
from graphcredit.store.schema import split_estimator_column
from graphcredit.store.sql.views import identifier

_TITLES: Mapping[str, str] = {
    "over_all": "rank correlation with true progress",
    "over_failed": "rank correlation in failures",
    "sign_agreement": "sign agreement with true progress",
    "silent_share": "steps without a signal",
}
"""Number of `MeanAgreement` to the title under which the audit reports it."""


def numbers(scope: Scope) -> dict[str, dict[str, float]]:
    """Judge every advantage, step part and progress, as `agreement.Agreement` defines it.

    Returns:
        Title to column to the mean over groups; a number that no group defines is left out. How
        many groups define the rank correlations is reported beside them.
    """
    columns = sorted(scope.columns_of("step_advantage", "progress", "advantage"), key=_label)
    _keep_judged_steps(scope, columns)
    means = {_label(name): mean_agreement(scope.connection, name) for name in columns}
    reported = {
        title: {
            label: value
            for label, mean in means.items()
            if (value := getattr(mean, field)) is not None
        }
        for field, title in _TITLES.items()
    }
    return reported | {"groups that were judged": _counts(means)}


def _keep_judged_steps(scope: Scope, columns: list[str]) -> None:
    """Put the steps with a truth in the place of `enriched`, read once for all columns."""
    scope.connection.execute(
        f"""
        CREATE TEMP TABLE judged_steps AS
        SELECT {TRAJECTORY}, task_id, oracle_distance, next_oracle_distance,
            {", ".join(f"{finite(name)} AS {name}" for name in map(identifier, columns))}
        FROM enriched WHERE isfinite(oracle_distance - next_oracle_distance);
        CREATE TEMP VIEW enriched AS FROM judged_steps;
        """
    )


def _label(column: str) -> str:
    """Return `graphgpo` of its advantage, `graphgpo step` of its step part, `reach progress`."""
    estimator, part = split_estimator_column(column) or (column, "advantage")
    return estimator if part == "advantage" else f"{estimator} {part.removesuffix('_advantage')}"


def _counts(means: Mapping[str, MeanAgreement]) -> dict[str, float]:
    """Return the counts of the column that was judged in most groups."""
    most = max(means.values(), key=lambda mean: mean.num_groups, default=None)
    if most is None:
        return {}
    return {
        "with credit": most.num_groups,
        "with progress that varies": most.num_ranked,
        "with progress that varies in failures": most.num_ranked_failed,
    }
