"""Judge credits of one unit whose views are disturbed, by kind of noise and by merge."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from benchmarks.noise.disturb import disturb_steps
from benchmarks.noise.judge import KINDS
from experiments.credit_truth.credit import judged
from experiments.credit_truth.judge import MANY, Played, Unit, group_gradients, made_by
from experiments.credit_truth.rollouts import Lists, step_table
from experiments.episodes import GROUP_SIZE, credit_of
from graphcredit.credit.merging.table import MergeSettings

NONE = "none"
"""The kind of noise that leaves texts as they are."""

NOISES: tuple[str, ...] = (NONE, *KINDS)

MERGES: Mapping[str, MergeSettings] = MappingProxyType(
    {
        "exact": MergeSettings(),
        "segments": MergeSettings(merge="segments"),
        "ngram 0.9": MergeSettings(merge="embedding", embedder="ngram", threshold=0.9),
    }
)
"""The default, the merge for noise, and the papers' way with an embedder that needs no model."""

LOGGED: tuple[Lists, ...] = ("exact", NONE)
"""Whether admissible actions are logged; the guard of a merge reads them."""

ESTIMATORS: tuple[str, ...] = ("grpo", "gigpo", "graphgpo", "reach")


@dataclass(frozen=True, kw_only=True, slots=True)
class NoisyUnit:
    """A unit whose views are disturbed in one way."""

    unit: Unit
    noise: str

    @property
    def name(self) -> str:
        """Name of the file of rows."""
        return f"{self.unit.name}-{self.noise}"


def noisy(chosen: list[Unit]) -> list[NoisyUnit]:
    """Return each unit with each noise; `MANY` groups of it, by default of `ESTIMATORS`."""
    return [
        NoisyUnit(
            unit=replace(unit, num_groups=MANY, estimators=unit.estimators or ESTIMATORS),
            noise=noise,
        )
        for unit in chosen
        for noise in NOISES
    ]


def noisy_made_by(of: NoisyUnit) -> str:
    """Return the fingerprint of the rows: all that determines them but the code."""
    return json.dumps(
        {
            "unit": made_by(of.unit),
            "noise": of.noise,
            "merges": {name: settings.as_json() for name, settings in MERGES.items()},
            "logged": LOGGED,
        },
        sort_keys=True,
    )


def judge_noisy(of: NoisyUnit) -> pl.DataFrame:
    """Return a row for each merge, kind of list and credit.

    Its columns are `fraction` of the true gain with one group, and `precision` and `recall` of the
    merge: over pairs of steps of a group, whether those on one node were in one view.
    """
    played = Played.of(of.unit)
    best = played.best_gain()
    of_unit = {"world": of.unit.world, "policy": of.unit.policy, "seed": of.unit.seed}
    rows: list[dict[str, Any]] = []
    chosen = list(judged(of.unit.estimators).values())
    for lists in LOGGED:
        clean = step_table(played.world, played.rollouts, lists=lists)
        seen = clean if of.noise == NONE else disturb_steps(clean, KINDS[of.noise], of.unit.seed)
        for merge, settings in MERGES.items():
            credit = credit_of(seen, chosen, settings)
            found = {"noise": of.noise, "merge": merge, "lists": lists}
            found |= _recovered(clean["state"], credit["state_id"], played)
            for name in of.unit.estimators:
                advantage = credit[f"{name}_advantage"].to_numpy().astype(np.float64)
                gradients = group_gradients(played.world, played.policy, played.rollouts, advantage)
                gains = [played.gain(gradient) for gradient in gradients]
                rows.append(
                    of_unit | found | {"credit": name, "fraction": float(np.mean(gains)) / best}
                )
    return pl.DataFrame(rows)


def _recovered(states: pa.ChunkedArray, nodes: pa.ChunkedArray, played: Played) -> dict[str, float]:
    """Return precision and recall of nodes, against the views."""
    group = played.rollouts.episode // GROUP_SIZE
    state, node = (
        np.unique(
            np.stack([group, np.unique(column.to_numpy(), return_inverse=True)[1]]),
            axis=1,
            return_inverse=True,
        )[1].ravel()
        for column in (states, nodes)
    )
    both = _pairs(state * (int(node.max()) + 1) + node)
    one_node, one_state = _pairs(node), _pairs(state)
    return {
        "precision": both / one_node if one_node else 1.0,
        "recall": both / one_state if one_state else 1.0,
    }


def _pairs(code: np.ndarray) -> float:
    count = np.unique(code, return_counts=True)[1].astype(np.float64)
    return float((count * (count - 1) / 2).sum())
