"""Judge every credit of one unit: a world, a kind of policy, a seed."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any
from zlib import crc32

import numpy as np
import polars as pl

from experiments.credit_truth.credit import credits_of, judged
from experiments.credit_truth.exact import Exact, policy_of
from experiments.credit_truth.kl_step import KL, gain_along
from experiments.credit_truth.policies import POLICIES, logits_of
from experiments.credit_truth.rollouts import sample
from experiments.credit_truth.world import World
from experiments.credit_truth.worlds.table import world_named
from experiments.episodes import GROUP_SIZE, Floats, Ints, Rollouts
from experiments.ranks import spearman_within
from graphcredit.store.options import options_as_json

MANY = 16
"""Groups whose gradients are added up for the figures of many groups."""

WINS: tuple[str, ...] = ("0", "1", "2", "3 or more")
"""Kinds of groups, by how many of their episodes were won."""

_ROUNDING = 1e-12

_WINS_SCHEMA = {name: pl.List(pl.Float64) for name in ("groups_by_wins", "sum_by_wins")}
_NO_WINS: dict[str, None] = dict.fromkeys(_WINS_SCHEMA)


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """One policy in one world, and how many groups of it are sampled."""

    world: str
    policy: str
    seed: int
    num_groups: int
    """A multiple of `MANY`."""
    estimators: tuple[str, ...]
    """Judged estimators; none for all that need no entities."""

    @property
    def name(self) -> str:
        """Name of the unit's file of rows; it also seeds the sampling."""
        return f"{self.world}-{self.policy}-{self.seed}"


def units(
    worlds: Iterable[str],
    *,
    num_seeds: int,
    num_groups: int,
    estimators: tuple[str, ...],
    policies: Iterable[str] = POLICIES,
) -> list[Unit]:
    """Return the units of some worlds and kinds of policies."""
    return [
        Unit(world=world, policy=policy, seed=seed, num_groups=num_groups, estimators=estimators)
        for world in worlds
        for policy in policies
        for seed in range(num_seeds)
    ]


def made_by(unit: Unit) -> str:
    """Return the fingerprint of a unit's rows: all that determines them but the code."""
    chosen = {name: options_as_json(options) for name, options in judged(unit.estimators).items()}
    return json.dumps(
        {"unit": asdict(unit), "estimators": chosen, "size": GROUP_SIZE, "kl": KL, "many": MANY},
        sort_keys=True,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Played:
    """What a unit plays, always the same, and what is known of it."""

    world: World
    logits: Floats
    """[num_views, num_actions] of the policy."""
    policy: Floats
    """[num_views, num_actions] probabilities."""
    exact: Exact
    rollouts: Rollouts
    rng: np.random.Generator
    """The generator that drew the rollouts, after them."""

    @classmethod
    def of(cls, unit: Unit) -> "Played":
        """Play a unit."""
        world = world_named(unit.world)
        logits = logits_of(world, unit.policy, unit.seed)
        policy = policy_of(world, logits)
        rng = np.random.default_rng([crc32(unit.name.encode()), 1])
        return cls(
            world=world,
            logits=logits,
            policy=policy,
            exact=Exact.of(world, policy),
            rollouts=sample(world, policy[None], unit.num_groups * GROUP_SIZE, rng),
            rng=rng,
        )

    def best_gain(self) -> float:
        """Return what the step along the exact gradient gains."""
        return self.gain(self.exact.gradient)

    def gain(self, gradient: Floats) -> float:
        """Return what the step along a gradient gains."""
        return gain_along(self.world, self.logits, self.exact, gradient)

    def gains(self, gradients: Floats) -> Floats:
        """Return what the step along each of some gradients gains."""
        return np.array([self.gain(gradient) for gradient in gradients])

    def gradients(self, credit: Floats, num_groups: int) -> Floats:
        """Return the gradients that a credit gives, summed over that many groups each."""
        of_group = group_gradients(self.world, self.policy, self.rollouts, credit)
        return of_group.reshape(-1, num_groups, *self.policy.shape).sum(1)

    def wins(self) -> Ints:
        """Return [num_groups] how many episodes of each group were won."""
        rollouts = self.rollouts
        won = self.world.is_won[rollouts.target] & rollouts.is_last
        return np.bincount(rollouts.episode // GROUP_SIZE, won).astype(np.int64)


def judge(unit: Unit) -> pl.DataFrame:
    """Return a row for each credit and number of groups, always the same."""
    played = Played.of(unit)
    world, exact, rollouts = played.world, played.exact, played.rollouts
    best = played.best_gain()
    of_unit = {"world": unit.world, "policy": unit.policy, "seed": unit.seed}
    rows: list[dict[str, Any]] = []
    for (name, lists), credit in credits_of(world, rollouts, judged(unit.estimators), exact):
        spearman = _spearman(world, rollouts, credit, exact)
        for num_groups in (1, MANY):
            gradients = played.gradients(credit, num_groups)
            fraction = played.gains(gradients) / best
            rows.append(
                of_unit
                | {"credit": name, "lists": lists, "num_groups": num_groups}
                | {"success": exact.success, "best_gain": best}
                | {"fraction": float(fraction.mean())}
                | {"cosine": _cosine(gradients, exact.gradient), "spearman": spearman}
                | {"silent": float(np.mean(np.abs(gradients).max((1, 2)) == 0))}
                | (_of_wins(fraction, played.wins()) if num_groups == 1 else _NO_WINS)
            )
    return pl.DataFrame(rows, schema_overrides={"spearman": pl.Float64, **_WINS_SCHEMA})


def _of_wins(fraction: Floats, wins: Ints) -> dict[str, list[float]]:
    """Return, by the number of wins, how many groups there are and the sum of their fractions."""
    wins = np.minimum(wins, len(WINS) - 1)
    groups, total = (np.bincount(wins, weight, len(WINS)) for weight in (None, fraction))
    return {"groups_by_wins": groups.tolist(), "sum_by_wins": total.tolist()}


def group_gradients(world: World, policy: Floats, rollouts: Rollouts, credit: Floats) -> Floats:
    """Return [num_groups, num_views, num_actions] Σ A ∇log π(a | o) over the steps of each group.

    Args:
        world: Where the episodes were played.
        policy: [num_views, num_actions] probabilities of the policy that played, or
            [num_groups, num_views, num_actions] of that of each group.
        rollouts: The episodes.
        credit: [num_steps] advantages A.
    """
    group = rollouts.episode // GROUP_SIZE
    summed = np.zeros((int(group.max()) + 1, *policy.shape[-2:]))
    np.add.at(summed, (group, world.view[rollouts.state], rollouts.action), credit)
    total = summed.sum(2, keepdims=True)
    gradient = summed - total * policy
    # Where one action alone is left, rounding is all that is.
    size = np.abs(summed).max(2, keepdims=True) + np.abs(total)
    return np.where(np.abs(gradient) > _ROUNDING * size, gradient, 0.0)


def _cosine(gradients: Floats, exact: Floats) -> float:
    """Return the mean cosine with the exact gradient; that of a gradient of zeros is 0."""
    along = np.einsum("goa,oa->g", gradients, exact)
    length = np.sqrt((gradients**2).sum((1, 2)) * (exact**2).sum())
    return float(np.divide(along, length, out=np.zeros(len(along)), where=length > 0).mean())


def _spearman(world: World, rollouts: Rollouts, credit: Floats, exact: Exact) -> float | None:
    """Return the rank correlation within views with the view's Q - V, weighted by steps.

    None if the truth differs nowhere within a view.
    """
    view = world.view[rollouts.state]
    truth = exact.view_advantage[view, rollouts.action]
    group = rollouts.episode // GROUP_SIZE
    steps = pl.DataFrame({"group": group, "view": view, "credit": credit, "truth": truth})
    cells = spearman_within(steps, "group", "view").drop_nulls()
    if not len(cells):
        return None
    return float(np.average(cells["correlation"], weights=cells["num_steps"]))
