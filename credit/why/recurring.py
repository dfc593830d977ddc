"""What recurs in the failures of a store: where, and how, they left the way that others won on.

A failed rollout leaves the good way with its last step from a state in which a rollout of its task
was that won. Failures that did the same there, or else were there, or else made the same kind of
call, are one cluster.
"""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from graphcredit.credit.why.sentences import coded
from graphcredit.store.layout import AnyStore, open_store
from graphcredit.store.parquet.snapshot import unchanged
from graphcredit.store.plural import counted
from graphcredit.store.sql.catalog import connect

_CALL = re.compile(r"\s*([\w./:-]+)\(")

_MOST_WORDS = 6
"""Words of an action; a longer one is a message."""

_DEPARTURES = """
    WITH ended AS (
        SELECT run_id, iteration, task_id, trajectory_id, success AS has_won FROM trajectories
        WHERE is_complete
    ), gone AS (
        SELECT run_id, iteration, task_id, trajectory_id, step_index, state_id, next_state_id,
            state, action, has_won
        FROM enriched JOIN ended USING (run_id, iteration, task_id, trajectory_id)
        WHERE state_id IS NOT NULL
    ), won AS (
        SELECT run_id, iteration, task_id, state_id, count(DISTINCT trajectory_id) AS num_winners
        FROM gone WHERE has_won GROUP BY ALL
    ), alike AS (
        SELECT run_id, iteration, task_id, state_id, action,
            count(DISTINCT trajectory_id) AS num_alike
        FROM gone WHERE has_won GROUP BY ALL
    ), of_task AS (SELECT DISTINCT run_id, iteration, task_id FROM won),
    last AS (
        SELECT run_id, iteration, task_id, trajectory_id, max(step_index) AS length,
            max(step_index) FILTER (num_winners IS NOT NULL) AS step_index
        FROM gone LEFT JOIN won USING (run_id, iteration, task_id, state_id)
        WHERE NOT has_won GROUP BY ALL
    )
    SELECT run_id, iteration, task_id, trajectory_id, coalesce(step_index, 0) AS step_index,
        state_id, state, action, coalesce(num_winners, 0) AS num_winners,
        coalesce(num_alike, 0) AS num_alike,
        step_index = length AND EXISTS (
            FROM won WHERE (won.run_id, won.iteration, won.task_id, won.state_id)
                = (gone.run_id, gone.iteration, gone.task_id, gone.next_state_id)
        ) AS is_on_it,
        of_task.task_id IS NOT NULL AS has_winner
    FROM last LEFT JOIN gone USING (run_id, iteration, task_id, trajectory_id, step_index)
        LEFT JOIN won USING (run_id, iteration, task_id, state_id)
        LEFT JOIN alike USING (run_id, iteration, task_id, state_id, action)
        LEFT JOIN of_task USING (run_id, iteration, task_id)
    ORDER BY run_id, iteration, task_id, trajectory_id
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Departure:
    """The step with which a failed rollout left the good way."""

    run_id: str
    iteration: int
    task_id: str
    trajectory_id: str
    step_index: int
    state_id: int | None
    """None if the rollout was in no state of a winner."""
    state: str | None
    action: str | None
    num_winners: int
    """Rollouts of the task that were in this state and won."""
    num_alike: int
    """Those of them that took the same action there: if all did, the state hides what lost."""
    is_on_it: bool
    """Whether the step was the last one, and led to a state of a winner: it ran out of steps."""
    has_winner: bool
    """Whether a rollout of the task won at all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """Failures that left the good way alike."""

    sentence: str
    members: tuple[Departure, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Recurring:
    """The failures of a store, clustered."""

    clusters: tuple[Cluster, ...]
    """The largest first."""
    num_failures: int
    num_alone: int
    """Failures that left as no other one did."""
    num_unwon: int
    """Failures in tasks that nobody won: there is no way to leave."""

    @property
    def summary(self) -> str:
        """What is not in the clusters, in a sentence; empty if there is no failure."""
        if not self.num_failures:
            return ""
        return (
            f"Of {counted(self.num_failures, 'failed rollout')}, {self.num_alone} left the way of "
            f"those that won as no other did, and {self.num_unwon} had a task that nobody won."
        )


def recurring(
    store: AnyStore, *, run_id: str | None = None, iteration: int | None = None
) -> Recurring:
    """Return the failures of a store in clusters.

    Raises:
        SchemaError: A file cannot be read.
    """
    opened = open_store(store)

    def ask() -> list[Departure]:
        views = connect(opened, run_id=run_id, iteration=iteration, is_verified=True)
        with views as connection:
            rows = connection.execute(_DEPARTURES)
            names = [column[0] for column in rows.description]
            return [Departure(**dict(zip(names, row, strict=True))) for row in rows.fetchall()]

    return _clustered(unchanged(opened, ask, run_id=run_id, iteration=iteration))


def _clustered(departures: list[Departure]) -> Recurring:
    """Return the clusters: each failure is in the closest one that has another failure, too."""
    left = [each for each in departures if each.has_winner]
    num_unwon = len(departures) - len(left)
    clusters: list[Cluster] = []
    for key in (_same_action, _same_state, _same_call):
        alike: defaultdict[Hashable, list[Departure]] = defaultdict(list)
        for each in left:
            alike[key(each)].append(each)
        clusters += (
            Cluster(sentence=_sentence(same, key is _same_call), members=tuple(same))
            for same in alike.values()
            if len(same) > 1
        )
        left = [each for same in alike.values() if len(same) == 1 for each in same]
    clusters.sort(key=lambda cluster: -len(cluster.members))
    return Recurring(
        clusters=tuple(clusters),
        num_failures=len(departures),
        num_alone=len(left),
        num_unwon=num_unwon,
    )


def _same_action(each: Departure) -> Hashable:
    return (*_same_state(each), each.action)


def _same_state(each: Departure) -> tuple[Hashable, ...]:
    place = each.run_id, each.iteration, each.task_id, each.state_id
    return (*place, each.trajectory_id) if _has_not_left(each) else place


def _same_call(each: Departure) -> Hashable:
    if _has_not_left(each):
        return each.is_on_it
    return kind_of_call(each.action or "")


def _has_not_left(each: Departure) -> bool:
    return each.is_on_it or each.state_id is None


def kind_of_call(action: str) -> str:
    """Return the tool of a call, or the first word of an action; a spoken one is a message."""
    if call := _CALL.match(action):
        return coded(call[1])
    words = action.split()
    return coded(words[0].lower()) if 0 < len(words) <= _MOST_WORDS else "a message"


def _sentence(same: list[Departure], is_of_calls: bool) -> str:
    """Return what failures have in common; the numbers are theirs and the winners'."""
    first = same[0]
    tasks = counted(len({(each.run_id, each.iteration, each.task_id) for each in same}), "task")
    failed = counted(len(same), "failed rollout")
    if first.is_on_it:
        return f"{failed} of {tasks} ended while still on the way of those that won."
    if first.state_id is None:
        return f"{failed} of {tasks} were never where those that won were."
    actions = {each.action for each in same}
    if is_of_calls:
        return f"{failed} of {tasks} left with {kind_of_call(first.action or '')}."
    did = f"with {coded(first.action or '')}" if len(actions) == 1 else _ways(actions)
    winners = f"{counted(first.num_winners, 'rollout')} went on to win"
    if len(actions) == 1 and first.num_alike:
        too = "" if first.num_alike == first.num_winners else f", {first.num_alike} of them"
        winners += f"{too} by the same action"
    return f"{failed} left {did}, where {winners}: {coded(first.state or '')}."


def _ways(actions: Iterable[str | None]) -> str:
    return f"by {counted(len({*actions}), 'different action')}"
