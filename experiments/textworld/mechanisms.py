"""Check two claims of the papers about step credit in the log of the warm policies.

    python -m experiments.textworld.mechanisms --out runs

- Failed trajectories make progress, and successful ones waste steps. The first table shows the
  shares of their steps that lead nearer to the goal, or not, by the true remaining plan.
- GraphGPO's Proposition 4.2: the step signal of one action in one state varies less if it comes
  from the graph than if it comes from the trajectory's return. The second table shows the share of
  the signal's variance that remains within (task, state, action). It is 0 if the pair determines
  the signal. The proposition is about pairs through which both successes and failures pass.

The warm policies play `--setting`'s games, in groups of 32.
"""

import argparse
from contextlib import closing
from pathlib import Path

import polars as pl

from experiments.textworld.cells import warm_start
from experiments.textworld.device import use_device
from experiments.textworld.markdown import markdown
from experiments.textworld.settings import SETTINGS
from experiments.textworld.warm import make_warm
from graphcredit.collector.collection import collect
from graphcredit.collector.environments.registry import environment_kind
from graphcredit.collector.options import CollectOptions
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store, create_store
from graphcredit.store.sql.catalog import connect

GROUP_SIZE = 32
ESTIMATORS = ("gigpo", "hgpo", "spo3", "g2po", "rewardflow", "graphgpo", "reach")
"""Estimators with a step part."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--setting", choices=list(SETTINGS), default="easy")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    use_device("cpu")
    store = create_store(options.out / options.setting / "mechanisms")
    for number in range(SETTINGS[options.setting].warm_starts):
        _play(store, options.out, options.setting, number)
    print(markdown(progress(store)))
    print(markdown(variance(store)))


def progress(store: Store) -> pl.DataFrame:
    """Return the shares of steps that lead closer or farther by the true plan, by outcome."""
    return _sql(
        store,
        """
        SELECT CASE WHEN t.success THEN 'success' ELSE 'failure' END AS outcome,
               count(*) AS steps,
               avg((s.next_oracle_distance < s.oracle_distance)::DOUBLE) AS closer,
               avg((s.next_oracle_distance = s.oracle_distance)::DOUBLE) AS "as far",
               avg((s.next_oracle_distance > s.oracle_distance)::DOUBLE) AS farther
        FROM steps s JOIN trajectories t USING (run_id, iteration, task_id, trajectory_id)
        WHERE s.oracle_distance IS NOT NULL AND s.next_oracle_distance IS NOT NULL
        GROUP BY 1 ORDER BY 1
        """,
    )


def variance(store: Store) -> pl.DataFrame:
    """Return, for each estimator, the share of its variance that remains within state and action.

    Variances within pairs are pooled, with one degree of freedom less for each pair, so the share
    may exceed 1. The whole variance is over the same steps: those of all pairs, or of mixed pairs.
    """
    return pl.concat(_sql(store, _VARIANCE.format(name=name)) for name in ESTIMATORS)


_VARIANCE = """
    WITH signals AS (
        SELECT e.run_id, e.task_id, e.state, e.action, t.success,
               e.{name}_step_advantage AS signal
        FROM enriched e JOIN trajectories t USING (run_id, iteration, task_id, trajectory_id)
        WHERE signal IS NOT NULL
    ), pairs AS (
        SELECT run_id, task_id, state, action,
               bool_or(success) AND NOT bool_and(success) AS is_mixed,
               count(*) AS n, var_samp(signal) AS v
        FROM signals GROUP BY ALL
        HAVING n > 1
    ), total AS (
        SELECT var_samp(signal) AS v, var_samp(signal) FILTER (is_mixed) AS v_mixed
        FROM signals JOIN pairs USING (run_id, task_id, state, action)
    )
    SELECT '{name}' AS estimator,
           sum((n - 1) * pairs.v) / sum(n - 1) / any_value(total.v) AS "all pairs",
           sum((n - 1) * pairs.v) FILTER (is_mixed) / sum(n - 1) FILTER (is_mixed)
               / any_value(total.v_mixed) AS "mixed pairs",
           sum(n)::BIGINT AS "steps in pairs",
           (sum(n) FILTER (is_mixed))::BIGINT AS "in mixed pairs"
    FROM pairs, total
    """


def _sql(store: Store, query: str) -> pl.DataFrame:
    with closing(connect(store)) as connection:
        return pl.DataFrame(connection.sql(query).to_arrow_table())


def _play(store: Store, out: Path, name: str, number: int) -> None:
    """Let a warm policy play, and assign credit; skip finished parts."""
    setting = SETTINGS[name]
    make_warm(out, name, number)
    run_id = f"warm-{number}"
    collect(
        store,
        environment_kind("textworld").list_tasks(
            setting.specs(setting.games), num_tasks=len(setting.games), seed=0
        ),
        CollectOptions(
            policy=f"hf:{warm_start(out, name, number) / 'model'}",
            template="tiny",
            group_size=GROUP_SIZE,
            max_steps=setting.max_steps,
            max_new_tokens=14,
            dtype="float32",
            seed=number,
            run=run_id,
            workers=0,
            oracle=True,
        ),
    )
    assign_credit(store, CreditSettings(estimators=configure(ESTIMATORS)), run_id=run_id)


if __name__ == "__main__":
    main()
