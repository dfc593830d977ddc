"""Whether rollouts that came nearer the answer of their task are those that won: SAPO's premise."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from graphcredit.credit.inputs.entities.mentions import find_mentions
from graphcredit.credit.steps.arrays import Bools, Floats, Ints
from graphcredit.credit.steps.complete import complete_trajectories
from graphcredit.store.parquet.er_graph import ErGraph

_DRAWS = 1000


@dataclass(frozen=True, slots=True)
class Premise:
    """Pairs of a won and a lost rollout of one group."""

    nearer: Ints
    """[num_groups] pairs in which the won one came nearer."""
    tied: Ints
    """[num_groups] pairs in which both came equally near."""
    pairs: Ints
    """[num_groups] all pairs, 1 or more."""

    @property
    def share(self) -> float:
        """The share of the pairs in which the won rollout came nearer; a tie is half of one."""
        return float(self._shares(np.arange(len(self.pairs))[None])[0])

    @property
    def interval(self) -> tuple[float, float]:
        """The middle 95 % of the share over groups drawn again."""
        number = len(self.pairs)
        drawn = np.random.default_rng(0).integers(number, size=(_DRAWS, number))
        low, high = np.quantile(self._shares(drawn), (0.025, 0.975))
        return float(low), float(high)

    def _shares(self, groups: Ints) -> Floats:
        nearer, tied, pairs = (
            each[groups].sum(axis=1) for each in (self.nearer, self.tied, self.pairs)
        )
        return (nearer + tied / 2) / pairs


def premise_of(graph: ErGraph, tables: Iterator[pa.Table]) -> Premise:
    """Return how far the best distance of a rollout tells whether it wins.

    The best distance is the least number of relations to the answer of all that a rollout
    retrieved or cited before its last step: that step answers, and may be told whether it is right.

    Args:
        graph: Entities of the tasks.
        tables: All steps of a run's iteration each, with `thought`.
    """
    counts = [
        _pairs_of(best[group == each], won[group == each])
        for table in tables
        for group, best, won in [_best_of(graph, table)]
        for each in np.unique(group)
    ]
    nearer, tied, pairs = np.array([c for c in counts if c[2]], np.int64).reshape(-1, 3).T
    return Premise(nearer, tied, pairs)


def _best_of(graph: ErGraph, table: pa.Table) -> tuple[Ints, Floats, Bools]:
    """Return [num_trajectories] the task of each with an answer, its best distance and success."""
    steps, _ = complete_trajectories(table)
    mentions = find_mentions(graph, steps, table["thought"])
    start = steps.trajectory_start
    last = start[1:] - 1
    step = np.concatenate([mentions.retrieved_step, mentions.cited_step])
    entity = np.concatenate([mentions.retrieved_entity, mentions.cited_entity])
    is_before = ~np.isin(step, last)
    best = np.full(len(last), np.inf)
    trajectory = np.searchsorted(start, step[is_before], side="right") - 1
    np.minimum.at(best, trajectory, mentions.answer_distance[entity[is_before]])
    task = steps.task[last]
    group = np.cumsum(np.diff(task, prepend=task[:1]) != 0)
    has_answer = mentions.has_answer[group]
    return group[has_answer], best[has_answer], steps.is_success[last][has_answer]


def _pairs_of(best: Floats, won: Bools) -> tuple[int, int, int]:
    winners, losers = best[won][:, None], best[~won][None]
    return (
        int((winners < losers).sum()),
        int((winners == losers).sum()),
        winners.size * losers.size,
    )
