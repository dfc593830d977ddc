"""The log: every game played by every policy, once, and the steps of a condition taken from it."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from benchmarks.noise import NOISES, disturb_steps
from experiments.credit_quality.conditions import BASE, EPSILONS, GROUP_SIZES, WINDOWS, Condition
from experiments.credit_quality.games import KINDS, kind_of
from graphcredit.collector.environments.table import environment_kind
from graphcredit.collector.memo import Environments
from graphcredit.collector.rollout import collect
from graphcredit.store import Store, create_store
from graphcredit.store.atomic import write_table
from graphcredit.store.catalog import connect
from graphcredit.store.schema import PARTITION_COLUMNS, STEP_SCHEMA

MAX_STEPS = 25
JUDGED = max(WINDOWS) - 1
"""The iteration whose steps are judged; those before it are there for the graph window alone."""
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


def run_of(epsilon: float) -> str:
    """Return the run that a policy played."""
    return f"oracle-{epsilon:g}"


def play(root: Path, games: Sequence[str], *, epsilons: Iterable[float] = EPSILONS) -> Store:
    """Play what of the log is not there yet.

    Args:
        root: The store of the log.
        games: Full names.
        epsilons: Policies; the one of `BASE` plays the earlier iterations too.
    """
    store = create_store(root)
    for kind in KINDS:
        specs = ",".join(game for game in games if kind_of(game) == kind)
        tasks = environment_kind("textworld").list_tasks(specs, num_tasks=len(games), seed=0)
        with closing(Environments(max_transitions=200_000)) as environments:
            for epsilon in epsilons:
                earlier = range(JUDGED) if epsilon == BASE.epsilon else ()
                for iteration in (*earlier, JUDGED):
                    done = collect(
                        store,
                        tasks=tasks,
                        policy=f"oracle:{epsilon}",
                        group_size=max(GROUP_SIZES) if iteration == JUDGED else BASE.group_size,
                        max_steps=MAX_STEPS,
                        seed=_SEED,
                        num_workers=0,
                        run_id=run_of(epsilon),
                        iteration=iteration,
                        environments=environments,
                        record_oracle=True,
                    )
                    print(
                        f"{kind}, epsilon {epsilon:g}, iteration {iteration}: "
                        f"{done.num_trajectories} trajectories, {done.seconds:.0f} s",
                        flush=True,
                    )
    return store


def write_steps(log: Store, condition: Condition, root: Path) -> Store:
    """Write the steps of a condition, as a store of their own.

    A rollout that was begun again keeps its number, and times are replaced: the first rollouts of
    all games end before the second ones. So nothing depends on when and where the log was played.

    Args:
        log: All games and policies.
        condition: Which steps.
        root: Where no store is yet.
    """
    store, run = create_store(root), run_of(condition.epsilon)
    for iteration in range(JUDGED + 1 - condition.window, JUDGED + 1):
        with connect(log, run_id=run, iteration=iteration) as connection:
            steps = connection.sql(_STEPS, params=[condition.group_size]).to_arrow_table()
        steps = steps.drop_columns([column.name for column in PARTITION_COLUMNS])
        steps = steps.select(STEP_SCHEMA.names).cast(STEP_SCHEMA)
        if condition.noise != "none":
            steps = disturb_steps(steps, NOISES[condition.noise], seed=iteration)
        write_table(steps, store.steps_dir(run, iteration) / "log-000000.parquet")
    return store
