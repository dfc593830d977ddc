"""The experiment's log: play every game once with every policy, and select a condition's steps."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from benchmarks.noise.design import KINDS
from benchmarks.noise.disturb import disturb_steps
from experiments.credit_quality.conditions import BASE, EPSILONS, GROUP_SIZES, WINDOWS, Condition
from experiments.credit_quality.games import by_kind
from graphcredit.collector.collection import collect
from graphcredit.collector.environments.prefix_cache import Environments
from graphcredit.collector.environments.registry import environment_kind
from graphcredit.collector.options import CollectOptions
from graphcredit.store import Store, create_store
from graphcredit.store.files.tables import write_table
from graphcredit.store.parquet.er_graph import merge_er_graph, read_er_graph
from graphcredit.store.schema import STEP_SCHEMA
from graphcredit.store.sql.catalog import connect

MAX_STEPS = 25
JUDGED = max(WINDOWS) - 1
"""Iteration whose steps are judged. Earlier ones are only for the graph window."""
_SEED = 0

_STEPS = """
    SELECT steps.* REPLACE (
        regexp_replace(trajectory_id, '\\.[0-9]+$', '') AS trajectory_id,
        make_timestamp((rollout * 3600 + step_index) * 1000000) AT TIME ZONE 'UTC' AS logged_at
    )
    FROM (
        SELECT steps.*,
            regexp_extract(trajectory_id, ':([0-9]+)(\\.[0-9]+)?$', 1)::BIGINT AS rollout
        FROM steps JOIN trajectories USING (run_id, iteration, trajectory_id)
        WHERE is_complete
    ) AS steps
    WHERE rollout < ?
    ORDER BY task_id, rollout, step_index
"""


def play(
    store: Store,
    environment: str,
    games: Sequence[str],
    *,
    epsilons: Iterable[float] = EPSILONS,
    group_size: int = max(GROUP_SIZES),
    games_dir: Path | None = None,
) -> None:
    """Play the missing parts of the log.

    Args:
        store: The log.
        environment: `textworld`, whose base policy plays the earlier iterations too, or `search`.
        games: Full names of games.
        epsilons: Shares of random actions, one for each policy.
        group_size: Rollouts of each game in the judged iteration.
        games_dir: Directory of generated games; the user's cache by default.
    """
    for kind, names in by_kind(tuple(games)).items():
        tasks = environment_kind(environment).list_tasks(
            ",".join(names), num_tasks=len(names), seed=0
        )
        # All policies share one cache of game states.
        with closing(Environments(max_transitions=200_000)) as environments:
            for condition, iteration in _iterations(environment, epsilons):
                done = collect(
                    store,
                    tasks,
                    CollectOptions(
                        policy=f"oracle:{condition.epsilon}",
                        group_size=group_size if iteration == JUDGED else BASE.group_size,
                        max_steps=MAX_STEPS,
                        seed=_SEED,
                        workers=0,
                        run=condition.run_id,
                        iteration=iteration,
                        oracle=True,
                        games_dir=games_dir,
                    ),
                    environments=environments,
                )
                print(
                    f"{kind}, {condition.run_id}, iteration {iteration}: {done.num_trajectories} "
                    f"trajectories in {done.seconds:.0f} s, {done.num_already_complete} were there",
                    flush=True,
                )


def _iterations(environment: str, epsilons: Iterable[float]) -> list[tuple[Condition, int]]:
    """Return the played policies and iterations, each with a condition that reads them."""
    found: list[tuple[Condition, int]] = []
    for epsilon in epsilons:
        condition = replace(BASE, environment=environment, epsilon=epsilon)
        found += [(condition, n) for n in range(JUDGED) if condition == BASE]
        found.append((condition, JUDGED))
    return found


def write_steps(log: Store, condition: Condition, root: Path) -> Store:
    """Write the steps of a condition to a new store.

    A restarted rollout keeps its number. Times are replaced, so that the first rollouts of all
    games end before the second ones. So nothing depends on when and where the log was played.

    Args:
        log: Store of all games and policies.
        condition: Selects the steps.
        root: Path of the new store.
    """
    store, run = create_store(root), condition.run_id
    for iteration in range(JUDGED + 1 - condition.window, JUDGED + 1):
        with connect(log, run_id=run, iteration=iteration) as connection:
            rows = connection.sql(_STEPS, params=[condition.group_size]).to_arrow_table()
        # The view leaves images out; no game here has any.
        fields = [field for field in STEP_SCHEMA if field.name in rows.column_names]
        schema = pa.schema(fields, metadata=STEP_SCHEMA.metadata)
        steps = rows.select(schema.names).cast(schema)
        if condition.noise != "none":
            steps = disturb_steps(steps, KINDS[condition.noise], seed=iteration)
        steps = _with_lists(steps, condition.lists)
        write_table(steps, store.steps_dir(run, iteration) / "log-000000.parquet")
    if condition.environment == "search":
        merge_er_graph(store, read_er_graph(log))
    return store


def _with_lists(steps: pa.Table, lists: str) -> pa.Table:
    """Return steps with other lists of admissible actions; see `LISTS`."""
    place = steps.schema.get_field_index("admissible_actions")
    field = steps.field(place)
    if lists == "none":
        return steps.set_column(place, field, pa.nulls(len(steps), field.type))
    if lists == "constant":
        given: list[list[str] | None] = steps.column(place).to_pylist()
        every = sorted({action for actions in given for action in actions or ()})
        return steps.set_column(place, field, pa.array([every] * len(steps), field.type))
    return steps
