"""Measures how well each merge recovers the true states from noisy texts of real games.

    python -m benchmarks.merging [STORE] [--kinds judge] [--seeds 3] [--ways exact segments]

STORE is a log of games whose `state` texts identify the true states. Without it, a policy that errs
seven times in ten plays TextWorld games: 16 for the kinds of noise that `segments` was designed
with (benchmarks/noise/design.py), and 26 others for each set of kinds that judged it when they were
new: judge.py, then later.py, then those of people who had not read it (strange, fresh, unseen.py,
sealed.py). All but judge.py, later.py and sealed.py became design later.
Each visit's text is then disturbed. `--ways` limits the ways of merging to those
named, and `--model PATH` adds those of a model. Each way of merging has these columns:

- precision, recall, F1: over pairs of visits within a group; a pair on the same node should be a
  pair in the same state;
- estimate: the precision that the report of `credit` estimates from the log alone; `!` where it
  warns;
- false: pairs on one node that the guard could have told apart, as their admissible actions differ;
- nodes: nodes for each true state; 1 is right;
- shift: mean change of an estimator's advantage, divided by its mean size without noise, for
  graphgpo, gigpo, reach and rewardflow.
"""

import argparse
import random
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.machine import describe
from benchmarks.noise import design, fresh, later, sealed, strange, unseen
from benchmarks.noise import judge as judging
from benchmarks.noise.disturb import disturb_steps
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.assemble import Assembly, assemble
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.admissible import signatures
from graphcredit.credit.merging.embedding.cache import CachedEmbedder
from graphcredit.credit.merging.merger import Merger, open_merger
from graphcredit.credit.merging.precision import estimate
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.store import Store, create_store, open_store, read_steps

ESTIMATORS = ("graphgpo", "gigpo", "reach", "rewardflow")
KINDS = {
    "design": design.KINDS,
    "judge": judging.KINDS,
    "later": later.KINDS,
    "strange": strange.KINDS,
    "fresh": fresh.KINDS,
    "unseen": unseen.KINDS,
    "sealed": sealed.KINDS,
}
GAMES = {
    "design": (16, 1),
    "judge": (26, 77),
    "later": (26, 78),
    "strange": (26, 79),
    "fresh": (26, 80),
    "unseen": (26, 81),
    "sealed": (26, 82),
}
"""How many games of which seed."""

HEADER = (
    f"{'noise':>18} {'merge':<26} {'precision':>9} {'recall':>7} {'F1':>7} {'estimate':>16} "
    f"{'false':>7} {'nodes':>6} {'shift: graphgpo':>15} {'gigpo':>6} {'reach':>6} "
    f"{'rewardflow':>10} {'s':>6}"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """One way of merging."""

    name: str
    settings: MergeSettings


def ways(model: str | None) -> list[Way]:
    """Return the compared ways of merging."""
    rules = ("whitespace", "casefold")
    found = [
        Way(name="exact", settings=MergeSettings()),
        Way(name="normalised", settings=MergeSettings(normalise=rules)),
        Way(name="segments", settings=MergeSettings(merge="segments")),
        Way(name="segments, no guard", settings=MergeSettings(merge="segments", guard=False)),
    ]
    for embedder in ("ngram", *([model] if model else [])):
        label = "ngram" if embedder == "ngram" else "model"
        for threshold, guard in ((0.95, True), (0.95, False), (0.8, True), (0.6, True)):
            settings = MergeSettings(
                merge="embedding",
                embedder=embedder,
                threshold=threshold,
                guard=guard,
                normalise=rules,
            )
            name = f"{label} {threshold:g}{'' if guard else ', no guard'}"
            found.append(Way(name=name, settings=settings))
    return found


def main() -> None:
    """Print a row for each noise and way of merging."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path, nargs="?")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--kinds", choices=KINDS, default="design")
    parser.add_argument("--model", help="Directory of a sentence-transformers model.")
    parser.add_argument("--ways", nargs="+", metavar="NAME", help="Names as in the table.")
    parser.add_argument("--noises", nargs="+", metavar="NAME", help="Only these of the kinds.")
    arguments = parser.parse_args()
    kinds = {"none": _as_it_is, **KINDS[arguments.kinds]}
    if unknown := [name for name in arguments.noises or [] if name not in kinds]:
        parser.error(f"--noises: {unknown} are none of {list(kinds)}")
    compared = {way.name: way for way in ways(arguments.model)}
    names: list[str] = arguments.ways or list(compared)
    if unknown := [name for name in names if name not in compared]:
        parser.error(f"--ways: {unknown} are none of {list(compared)}")
    print(describe())
    with tempfile.TemporaryDirectory() as folder:
        clean = _read(
            open_store(arguments.store)
            if arguments.store
            else _play(Path(folder), *GAMES[arguments.kinds])
        )
        keep = partial(CachedEmbedder, create_store(Path(folder) / "vectors"))
        print(f"{clean.num_rows:,} steps, {assemble(clean).merged.num_states:,} true states")
        print(HEADER)
        for name in arguments.noises or kinds:
            tables = [disturb_steps(clean, kinds[name], seed) for seed in range(arguments.seeds)]
            for way in (compared[chosen] for chosen in names):
                rows = [judge(clean, table, open_merger(way.settings, keep)) for table in tables]
                print(f"{name:>18} {way.name:<26} {_row(np.mean(rows, axis=0))}", flush=True)


def judge(clean: pa.Table, noisy: pa.Table, merger: Merger) -> list[float]:
    """Return the columns of a row: the estimate is three numbers, with its error and warning."""
    settings = CreditSettings(estimators=configure(ESTIMATORS))
    more: dict[str, Any] = {"inputs": settings.inputs, "columns": settings.reads}
    truth = assemble(clean, **more)
    start = time.perf_counter()
    found = assemble(noisy, merger=merger.learn([noisy]), **more)
    seconds = time.perf_counter() - start
    state, node = truth.batch.state_of_step, found.batch.state_of_step
    both = _pairs(state * found.batch.num_nodes + node)
    precision = both / _pairs(node) if _pairs(node) else 1.0
    recall = both / _pairs(state)
    seen = signatures(clean["admissible_actions"])[truth.steps.row]
    false = _pairs(node) - _pairs(node * (1 << 20) + np.unique(seen, return_inverse=True)[1])
    judged = estimate(found.merged.evidence)
    return [
        precision,
        recall,
        2 * precision * recall / max(precision + recall, 1e-12),
        judged.precision if judged else np.nan,
        (judged.standard_error or 0.0) if judged else np.nan,
        float(judged is not None and judged.is_below(settings.merge.min_merge_precision)),
        false,
        found.merged.num_states / truth.merged.num_states,
        *(_shift(name, truth, found) for name in ESTIMATORS),
        seconds,
    ]


def _as_it_is(text: str, rng: random.Random, index: int) -> str:
    return text


def _pairs(code: np.ndarray) -> float:
    count = np.unique(code, return_counts=True)[1].astype(float)
    return float((count * (count - 1) / 2).sum())


def _shift(name: str, truth: Assembly, found: Assembly) -> float:
    estimator = configure([name])[name]
    exact = estimator.assign(truth.batch)["advantage"]
    merged = estimator.assign(found.batch)["advantage"]
    return float(np.abs(exact - merged).mean() / max(np.abs(exact).mean(), 1e-12))


def _row(values: np.ndarray) -> str:
    precision, recall, f1, judged, error, warns, false, nodes, *shifts, seconds = values
    graphgpo, gigpo, reach, rewardflow = shifts
    return (
        f"{precision:>9.4f} {recall:>7.4f} {f1:>7.4f} "
        f"{judged:>7.4f} ± {error:.3f}{'!' if warns else ' '} {false:>7.0f} {nodes:>6.2f} "
        f"{graphgpo:>15.3f} {gigpo:>6.3f} {reach:>6.3f} {rewardflow:>10.3f} {seconds:>6.2f}"
    )


def _read(store: Store) -> pa.Table:
    return pa.concat_tables(read_steps(store)).drop_columns(["run_id", "iteration"])


def _play(folder: Path, num_games: int, seed: int) -> Store:
    from graphcredit.collector.collection import collect
    from graphcredit.collector.environments.registry import environment_kind
    from graphcredit.collector.options import CollectOptions

    tasks = environment_kind("textworld").list_tasks(None, num_tasks=num_games, seed=seed)
    collect(
        folder / "games",
        tasks,
        CollectOptions(policy="oracle:0.7", group_size=8, max_steps=30, seed=seed, workers=2),
    )
    return open_store(folder / "games")


if __name__ == "__main__":
    main()
