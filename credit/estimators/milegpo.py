"""MileGPO: GraphGPO, and what a step gains towards milestones and loses towards traps."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

import numpy as np
from pydantic import Field

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.parts import episode_part, state_part
from graphcredit.credit.estimators.relative import Normalize, StatOver, relative_to_others
from graphcredit.credit.graph.distances import DistanceFinder
from graphcredit.credit.steps.arrays import Floats, Ints, factorise_pairs
from graphcredit.store.options import PositiveDiscount, Weight

Decay: TypeAlias = Annotated[float, Field(gt=0, lt=1)]
"""A discount that is no limit: at 1 every milestone would be everywhere."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MileGpo:
    """A step is worth its way to the goal, the milestones it nears less the traps, and its branch.

        S⁺(v) = w_s · max(p(v) - p̄, 0) + w_m · coverage(v) + w_c · degree(v)   if a success visits v
        S⁻(v) = w_f · p̄ + w_l · f(v) · revisits(v)                             if no success does
        Φ(s)  = max over v of S(v) · ω^{d(s, v)}                               for S⁺ and for S⁻
        δ     = max(Φ(s_{t+1}) - Φ(s_t), 0)
        step reward = c · γ_G^{d(s_{t+1}, goal)} + c · λ · (δ⁺ - δ⁻) + c · μ · branch
        A = β_E · rel(R(τ); group) + β_G · rel(step reward; state group)

    A rollout visits the states of its steps and the one it ends in; the goal is neither a
    milestone nor a trap. p(v) is the success rate of the rollouts that visit v, p̄ that of the
    group. Coverage is the share of the group's successes that visit v, f that of its failures. The
    degree is the number of distinct edges into and out of v, over the group's largest. Revisits are
    the share of the visits of v that are not a rollout's first. d is the cheapest observed path,
    as in GraphGPO, and s_t is `state_of_step`, s_{t+1} is `target_of_step`. Branch is the success
    rate of the rollouts that take the step's edge less the mean of the other edges from s_t, 0
    where there is no other. At a state that no success visits, all fail, so its failure rate
    exceeds the group's by p̄.

    **Left open by what is known of the paper**: every weight and its default; the exact measures of
    coverage, degree and revisits; and how the branch enters, which here is a term of its own. The
    defaults of w keep S between 0 and 1.

    **Degenerate cases.** Where there is no path, γ_G^d and ω^d are 0. A group without a success has
    no milestone and p̄ = 0: its traps are the states that are revisited, which is all it has of a
    step signal. A group without a failure has no trap. Source: MileGPO paper, arXiv 2608.19803.
    """

    distance_discount: PositiveDiscount = 0.1
    """γ_G, as GraphGPO's λ."""
    success_reward: Weight = 10.0
    """c, the worth of the goal, and the scale of all terms."""
    shaping: Weight = 0.5
    """λ, weight of what a step gains towards milestones and traps."""
    branch_weight: Weight = 0.5
    """μ, weight of the success rate of a step's edge over its siblings'."""
    decay: Decay = 0.9
    """ω, what is left of a milestone or a trap at a distance of 1."""
    excess_weight: Weight = 0.5
    """w_s, weight of a milestone's excess success."""
    coverage_weight: Weight = 0.25
    """w_m, weight of the share of successes that visit a milestone."""
    degree_weight: Weight = 0.25
    """w_c, weight of a milestone's degree."""
    failure_weight: Weight = 0.5
    """w_f, weight of a trap's excess failure."""
    loop_weight: Weight = 0.5
    """w_l, weight of the revisits of a trap."""
    step_weight: Weight = 1.0
    """β_G, weight of the step part."""
    episode_weight: Weight = 1.0
    """β_E, weight of the episode part."""
    normalize: Normalize = "std"
    """Divide by the standard deviation, or not."""
    stat_over: StatOver = "trajectories"
    """For the episode part: count each rollout once, or once per step."""

    def assign(self, batch: StepBatch) -> dict[str, Floats]:
        """Return the parts of the advantage, each [num_steps]."""
        milestone, trap = self.scores(batch)
        to_goal = np.power(self.distance_discount, batch.graph.goal_distance)
        shaped = _rise(batch, self.potential(batch, milestone))
        shaped -= _rise(batch, self.potential(batch, trap))
        worth = np.where(np.isfinite(batch.graph.goal_distance), to_goal, 0.0)
        reward = self.success_reward * (
            worth[batch.target_of_step]
            + self.shaping * shaped
            + self.branch_weight * _branch(batch)
        )
        step = state_part(batch, reward, normalize=self.normalize)
        episode = episode_part(
            batch, batch.episode_return, normalize=self.normalize, stat_over=self.stat_over
        )
        return {
            "step_reward": reward,
            "step_advantage": step,
            "episode_advantage": episode,
            "advantage": self.episode_weight * episode + self.step_weight * step,
        }

    def scores(self, batch: StepBatch) -> tuple[Floats, Floats]:
        """Return S⁺ and S⁻ of every node. [num_nodes] each."""
        visits = _Visits.of(batch)
        num_won = np.bincount(batch.group_of_trajectory, batch.is_success, batch.num_groups)
        num_all = np.bincount(batch.group_of_trajectory, minlength=batch.num_groups)
        group = batch.group_of_node
        mean = (num_won / num_all)[group]
        is_goal = np.zeros(batch.num_nodes, bool)
        is_goal[batch.goal_of_group[batch.goal_of_group >= 0]] = True
        visitors = np.maximum(visits.num_trajectories, 1)
        excess = np.maximum(visits.num_won / visitors - mean, 0.0)
        covered = visits.num_won / np.maximum(num_won, 1)[group]
        failing = visits.num_trajectories - visits.num_won
        failed = failing / np.maximum(num_all - num_won, 1)[group]
        revisits = 1 - visitors / np.maximum(visits.num_all, 1)
        milestone = (
            self.excess_weight * excess
            + self.coverage_weight * covered
            + self.degree_weight * _degree(batch)
        )
        trap = self.failure_weight * mean + self.loop_weight * failed * revisits
        is_won = visits.num_won > 0
        return np.where(is_won & ~is_goal, milestone, 0.0), np.where(is_won | is_goal, 0.0, trap)

    def potential(self, batch: StepBatch, score: Floats) -> Floats:
        """Return Φ of every node: the best of S · ω^d, found as the least of d + log S / log ω."""
        scored = np.flatnonzero(score > 0)
        largest = score.max(initial=0.0)
        extra = np.log(score[scored] / largest) / np.log(self.decay)
        find = DistanceFinder(
            batch.graph.source, batch.graph.target, batch.num_nodes, scored, extra
        )
        return largest * np.power(self.decay, find(batch.graph.cost))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Visits:
    """How often each node is visited, each [num_nodes]."""

    num_all: Ints
    """Visits."""
    num_trajectories: Ints
    """Rollouts that visit."""
    num_won: Ints
    """Successes among them."""

    @classmethod
    def of(cls, batch: StepBatch) -> "_Visits":
        num_trajectories = len(batch.is_success)
        ends = batch.target_of_step[batch.trajectory_start[1:] - 1]
        visitor = np.concatenate([batch.trajectory_of_step, np.arange(num_trajectories)])
        visited = np.concatenate([batch.state_of_step, ends])
        _, trajectory, node = factorise_pairs(visitor, visited)
        return cls(
            num_all=np.bincount(visited, minlength=batch.num_nodes),
            num_trajectories=np.bincount(node, minlength=batch.num_nodes),
            num_won=np.bincount(node[batch.is_success[trajectory]], minlength=batch.num_nodes),
        )


def _degree(batch: StepBatch) -> Floats:
    """Return the edges into and out of every node over its group's largest number. [num_nodes]."""
    _, source, target = factorise_pairs(batch.state_of_step, batch.target_of_step)
    ends = np.concatenate([source, target])
    degree = np.bincount(ends, minlength=batch.num_nodes).astype(np.float64)
    largest = np.ones(batch.num_groups)
    np.maximum.at(largest, batch.group_of_node, degree)
    return degree / largest[batch.group_of_node]


def _rise(batch: StepBatch, potential: Floats) -> Floats:
    """Return δ of every step. [num_steps]."""
    return np.maximum(potential[batch.target_of_step] - potential[batch.state_of_step], 0.0)


def _branch(batch: StepBatch) -> Floats:
    """Return the success rate of each step's edge less the mean of its siblings'. [num_steps]."""
    edge_of_step, source, _ = factorise_pairs(batch.state_of_step, batch.target_of_step)
    _, trajectory, edge = factorise_pairs(batch.trajectory_of_step, edge_of_step)
    takers = np.bincount(edge, minlength=len(source))
    won = np.bincount(edge[batch.is_success[trajectory]], minlength=len(source))
    rate = won / np.maximum(takers, 1)
    return relative_to_others(rate, source, batch.num_nodes)[edge_of_step]
