"""What is still earned from each state, as a group's own steps say it.

    V(s) = (Σ (r + V(s')) + κ(s) e(s)) / (n(s) + κ(s))        an end leads to nothing: V = 0

The sum is over the n(s) steps that left s, each with reward r to an s'. e(s) is what something
unknown would earn from s, and κ(s) how many such steps are supposed beside the n(s):

    0   at a corridor: every step from it led to one other state, and none ended
    0   at a state that one trajectory alone visited, where the group earned anything
    κ   elsewhere

So a corridor is worth what lies behind it, however long it is. Corridors are passed over first, by
pointers that double; what is left is one system of linear equations for each group.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.earnings import Earnings
from graphcredit.credit.steps.arrays import Bools, Floats, Ints, distinct_pairs

_DIRECT = 1500
"""Most states of a group whose equations are solved directly; more are swept."""

_CELLS = 4_000_000
"""Most cells of all matrices that are solved together."""

_SETTLED, _SWEEPS = 1e-12, 100_000
"""A sweep that changes no value by more is the last, and so is that of this number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """The states of a batch, and how far the steps that left each one are believed."""

    num_left: Floats
    """[num_nodes] n(s): steps that left it."""
    is_corridor: Bools
    """[num_nodes]."""
    is_alone: Bools
    """[num_nodes] whether one trajectory alone left it."""
    doubt: Floats
    """[num_nodes] κ(s)."""

    @classmethod
    def of(cls, batch: StepBatch, earned: Earnings, *, doubt: float) -> "Places":
        """Return the places of a batch, with the doubt κ of ordinary ones."""
        graph, num_nodes = batch.graph, batch.num_nodes
        num_left = np.bincount(graph.source, graph.count, num_nodes).astype(np.float64)
        kinds = np.bincount(graph.source, minlength=num_nodes)
        stays = (graph.ends > 0) | (graph.source == graph.target)
        is_end = np.bincount(graph.source, stays, num_nodes) > 0
        state, _ = distinct_pairs(batch.state_of_step, batch.trajectory_of_step)
        num_visitors = np.bincount(state, minlength=num_nodes)
        own = np.bincount(batch.state_of_step, minlength=num_nodes)
        is_corridor = (kinds == 1) & ~is_end
        is_alone = (num_visitors == 1) & (own == num_left)
        is_sure = is_corridor | (is_alone & ~earned.earned_nothing(batch)[batch.group_of_node])
        return cls(
            num_left=num_left,
            is_corridor=is_corridor,
            is_alone=is_alone,
            doubt=np.where(is_sure, 0.0, doubt),
        )

    def values(self, batch: StepBatch, earned: Earnings, *unknown: Floats) -> list[Floats]:
        """Return [num_nodes] V for each of some e(s), [num_nodes] each."""
        graph = batch.graph
        end, way = self._ways(batch, earned)
        core = np.flatnonzero((self.num_left > 0) & ~self.is_corridor)
        place = np.full(batch.num_nodes, -1)
        place[core] = np.arange(len(core))
        used = np.flatnonzero(place[graph.source] >= 0)
        source, count = place[graph.source[used]], graph.count[used]
        target, going = place[end[graph.target[used]]], count * (1.0 - graph.ends[used])
        known = count * earned.of_transition[used] + going * way[graph.target[used]]
        total = np.bincount(source, known, len(core))
        right = np.stack([total + (self.doubt * each)[core] for each in unknown], axis=1)
        flows = going > 0
        equations = _Equations(
            group=batch.group_of_node[core],
            weight=(self.num_left + self.doubt)[core],
            source=source[flows],
            target=target[flows],
            flow=going[flows],
        )
        solved = np.concatenate([equations.solve(right), np.zeros((1, len(unknown)))])
        return [way + solved[place[end], column] for column in range(len(unknown))]

    def _ways(self, batch: StepBatch, earned: Earnings) -> tuple[Ints, Floats]:
        """Return [num_nodes] where the corridors from each node end, and what is earned there."""
        graph = batch.graph
        end, way = np.arange(batch.num_nodes), np.zeros(batch.num_nodes)
        of_corridor = np.flatnonzero(self.is_corridor[graph.source])
        end[graph.source[of_corridor]] = graph.target[of_corridor]
        way[graph.source[of_corridor]] = earned.of_transition[of_corridor]
        while True:
            further = end[end]
            if np.array_equal(further, end):
                return end, way
            way, end = way + way[end], further


@dataclass(frozen=True, kw_only=True, slots=True)
class _Equations:
    """weight · x - Σ flow · x[target] = right, for the unknowns x of many groups."""

    group: Ints
    """[num_unknowns] ascending."""
    weight: Floats
    """[num_unknowns]."""
    source: Ints
    """[num_flows]."""
    target: Ints
    """[num_flows]."""
    flow: Floats
    """[num_flows] above 0."""

    def solve(self, right: Floats) -> Floats:
        """Return x for each column of right, [num_unknowns, num_columns]."""
        found = np.zeros_like(right)
        size = np.bincount(self.group)
        start = np.cumsum(size) - size
        for groups in _together(size):
            self._solve_directly(found, right, groups, size, start)
        if (size > _DIRECT).any():
            self._sweep(found, right, size[self.group] > _DIRECT)
        return found

    def _solve_directly(
        self, found: Floats, right: Floats, groups: Ints, size: Ints, start: Ints
    ) -> None:
        width = int(size[groups].max())
        number = np.full(len(size), -1)
        number[groups] = np.arange(len(groups))
        local = np.arange(len(self.group)) - start[self.group]
        matrix = np.zeros((len(groups), width, width))
        matrix[:, np.arange(width), np.arange(width)] = 1.0
        rows = np.flatnonzero(number[self.group] >= 0)
        matrix[number[self.group[rows]], local[rows], local[rows]] = self.weight[rows]
        flows = np.flatnonzero(number[self.group[self.source]] >= 0)
        source, target = self.source[flows], self.target[flows]
        cell = (number[self.group[source]] * width + local[source]) * width + local[target]
        matrix -= np.bincount(cell, self.flow[flows], matrix.size).reshape(matrix.shape)
        sides = np.zeros((len(groups), width, right.shape[1]))
        sides[number[self.group[rows]], local[rows]] = right[rows]
        solved = np.linalg.solve(matrix, sides)
        found[rows] = solved[number[self.group[rows]], local[rows]]

    def _sweep(self, found: Floats, right: Floats, is_asked: Bools) -> None:
        """Solve the equations of some unknowns by sweeps, until no value changes any more."""
        flows = is_asked[self.source]
        source, target, flow = self.source[flows], self.target[flows], self.flow[flows]
        loops = source == target
        weight = self.weight - np.bincount(source[loops], flow[loops], len(self.weight))
        source, target, flow = source[~loops], target[~loops], flow[~loops]
        size = np.abs(right).max(initial=1.0)
        for column in range(right.shape[1]):
            value = np.zeros(len(weight))
            for _ in range(_SWEEPS):
                led_to = np.bincount(source, flow * value[target], len(weight))
                swept = np.where(is_asked, (right[:, column] + led_to) / weight, 0.0)
                change = np.abs(swept - value).max(initial=0.0)
                value = swept
                if not change > _SETTLED * size:  # nor if it is no number
                    break
            found[is_asked, column] = value[is_asked]


def _together(size: Ints) -> Iterator[Ints]:
    """Yield groups of like sizes whose matrices are solved in one call, the small ones first."""
    order = np.argsort(size, kind="stable")
    order = order[(size[order] > 0) & (size[order] <= _DIRECT)]
    while len(order):
        cells = np.arange(1, len(order) + 1) * size[order].astype(np.float64) ** 2
        number = max(1, int(np.searchsorted(cells, _CELLS, side="right")))
        yield order[:number]
        order = order[number:]
