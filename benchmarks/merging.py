"""Measures how well each merge recovers the true states from noisy texts of real games.

    python -m benchmarks.merging [STORE] [--games 26] [--ways exact segments]

STORE is a log of games whose `state` texts identify the true states. Without it, a policy that errs
three times in ten plays TextWorld games. Each visit's text is then disturbed in one of the ways of
benchmarks/noise/judge.py. Each row has these columns:

- precision, recall, F1: over pairs of visits within a group; a pair on the same node should be a
  pair in the same state;
- nodes: nodes for each true state; 1 is right;
- shift: mean change of GraphGPO's advantage, divided by its mean size without noise.
"""

import argparse
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.machine import describe
from benchmarks.noise.disturb import disturb_steps
from benchmarks.noise.judge import KINDS
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.assemble import Assembly, assemble
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.merger import Merger, open_merger
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.store import Store, open_store, read_steps

_SEED = 77
"""Of the games."""
_RULES = ("whitespace", "casefold")

WAYS = {
    "exact": MergeSettings(),
    "segments": MergeSettings(merge="segments"),
    "segments, no guard": MergeSettings(merge="segments", guard=False),
    **{
        f"ngram {threshold:g}": MergeSettings(
            merge="embedding", embedder="ngram", threshold=threshold, normalise=_RULES
        )
        for threshold in (0.95, 0.8)
    },
}
"""Ways of merging; `no guard` is as where no admissible actions are logged."""


def main() -> None:
    """Print a row for each noise and way of merging."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path, nargs="?")
    parser.add_argument("--games", type=int, default=26)
    parser.add_argument("--seed", type=int, default=0, help="Of the noise.")
    parser.add_argument("--ways", nargs="+", metavar="NAME", default=list(WAYS), choices=WAYS)
    parser.add_argument("--noises", nargs="+", metavar="NAME", help="Only these of the kinds.")
    arguments = parser.parse_args()
    kinds = {"none": _as_it_is, **KINDS}
    if unknown := [name for name in arguments.noises or [] if name not in kinds]:
        parser.error(f"--noises: {unknown} are none of {list(kinds)}")
    print(describe())
    with tempfile.TemporaryDirectory() as folder:
        store = arguments.store or play(Path(folder) / "games", arguments.games, _SEED)
        clean = _read(open_store(store))
    print(f"{clean.num_rows:,} steps, {assemble(clean).merged.num_states:,} true states")
    print(
        f"{'noise':>12} {'merge':<20} {'precision':>9} {'recall':>7} {'F1':>7} "
        f"{'nodes':>6} {'shift':>6} {'s':>6}"
    )
    for name in arguments.noises or kinds:
        noisy = disturb_steps(clean, kinds[name], arguments.seed)
        for way in arguments.ways:
            print(f"{name:>12} {way:<20} {judge(clean, noisy, open_merger(WAYS[way]))}", flush=True)


def judge(clean: pa.Table, noisy: pa.Table, merger: Merger) -> str:
    """Return the columns of a row."""
    settings = CreditSettings(estimators=configure(["graphgpo"]))
    inputs: dict[str, Any] = {"inputs": settings.inputs, "columns": settings.reads}
    truth = assemble(clean, **inputs)
    start = time.process_time()
    found = assemble(noisy, merger=merger.learn([noisy]), **inputs)
    seconds = time.process_time() - start
    precision, recall = agreement(truth, found)
    f1 = 2 * precision * recall / max(precision + recall, 1e-12)
    nodes = found.merged.num_states / truth.merged.num_states
    return (
        f"{precision:>9.4f} {recall:>7.4f} {f1:>7.4f} {nodes:>6.2f} "
        f"{_shift(truth, found):>6.3f} {seconds:>6.2f}"
    )


def agreement(truth: Assembly, found: Assembly) -> tuple[float, float]:
    """Return precision and recall over pairs of visits."""
    state, node = truth.batch.state_of_step, found.batch.state_of_step
    both = _pairs(state * found.batch.num_nodes + node)
    return both / _pairs(node) if _pairs(node) else 1.0, both / _pairs(state)


def _as_it_is(text: str, rng: random.Random, index: int) -> str:
    return text


def _pairs(code: np.ndarray) -> float:
    count = np.unique(code, return_counts=True)[1].astype(float)
    return float((count * (count - 1) / 2).sum())


def _shift(truth: Assembly, found: Assembly) -> float:
    estimator = configure(["graphgpo"])["graphgpo"]
    exact, merged = (estimator.assign(of.batch)["advantage"] for of in (truth, found))
    return float(np.abs(exact - merged).mean() / max(np.abs(exact).mean(), 1e-12))


def _read(store: Store) -> pa.Table:
    return pa.concat_tables(read_steps(store)).drop_columns(["run_id", "iteration"])


def play(folder: Path, num_games: int, seed: int) -> Path:
    """Play games into a store, and return it."""
    from graphcredit.collector.collection import collect
    from graphcredit.collector.environments.registry import environment_kind
    from graphcredit.collector.options import CollectOptions

    tasks = environment_kind("textworld").list_tasks(None, num_tasks=num_games, seed=seed)
    collect(
        folder,
        tasks,
        CollectOptions(policy="oracle:0.7", group_size=8, max_steps=30, seed=seed, workers=2),
    )
    return folder


if __name__ == "__main__":
    main()
