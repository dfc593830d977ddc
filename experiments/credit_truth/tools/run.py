"""What credit by rules for states is worth to agents with tools, where the truth is known.

    python -m experiments.credit_truth.tools.run --out tools
    python -m experiments.credit_truth.tools.run --out tools --design      # tasks for design

For each task of the service and kind of policy, groups are sampled and logged as people log them.
Rules turn the logs into states, evidence recommends one of them, and the exact yardstick says what
credit by each is worth to learning.
"""

import argparse
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from experiments.credit_truth.judge import MANY, Played, Unit, made_by, units
from experiments.credit_truth.settings import TUNED
from experiments.credit_truth.states.run import GROUPS_FOR_WORTH, NUM_GROUPS, knowledge, mean_gain
from experiments.credit_truth.tools.log import TRUE, effects_of, in_true_states, logged
from experiments.credit_truth.tools.report import tables
from experiments.credit_truth.worlds.table import DESIGN_TOOL_WORLDS, TOOL_WORLDS
from experiments.episodes import Floats, advantages
from experiments.jobs import made
from graphcredit.collector.states.restate import restated
from graphcredit.collector.states.table import learned
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.in_memory import compute
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.store.errors import CreditWarning
from graphcredit.store.files.tables import write_table

RULES = ("results", "calls", "facts", "effects", "effects+last-tool")
"""What `graphcredit evidence` judges besides the logged states, without the work tree."""

CONTROLS = ("grpo", "discounted", "discounted, tuned on scores")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("tools"))
    parser.add_argument("--design", action="store_true", help="the tasks for design")
    parser.add_argument("--seeds", type=int, default=2, help="policies of each kind in a task")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    chosen = units(
        tuple(DESIGN_TOOL_WORLDS if options.design else TOOL_WORLDS),
        num_seeds=options.seeds,
        num_groups=GROUPS_FOR_WORTH,
        estimators=("reach",),
    )
    rows = made(options.out / "units", chosen, judge, made_by, options.workers)
    write_table(rows.to_arrow(), options.out / "tools.parquet")
    text = tables(rows)
    (options.out / "tools.md").write_text(text, encoding="utf-8")
    print(text)


def judge(unit: Unit) -> pl.DataFrame:
    """Return a row for each definition of a state, and for each control that has none.

    `fraction` is that of the true gain with one group, `fraction_many` that with `MANY`.
    """
    played = Played.of(unit)
    of_unit = {"world": unit.world, "policy": unit.policy, "seed": unit.seed}
    rows: list[dict[str, Any]] = []
    for name, steps, merge in _definitions(played):
        credit = _compute(steps, merge)
        known = knowledge(played, np.unique(credit["state_id"].to_numpy(), return_inverse=True)[1])
        rows.append(
            {"definition": name, "company": known.company}
            | {"evidence": known.evidence().value, "beyond": known.beyond_chance().value}
            | _fractions(played, credit["reach_advantage"].to_numpy().astype(np.float64))
        )
    steps = logged(played.world, played.rollouts)
    controls = {name: TUNED[name] for name in CONTROLS if name in TUNED}
    controls |= configure(name for name in CONTROLS if name not in TUNED)
    for name, advantage in advantages(steps, controls).items():
        rows.append({"definition": name} | _fractions(played, advantage))
    exact, rollouts = played.exact, played.rollouts
    truth = exact.advantage[rollouts.time, rollouts.state, rollouts.action]
    rows.append({"definition": "exact Q - V"} | _fractions(played, truth))
    return pl.DataFrame([of_unit | row for row in rows], infer_schema_length=None)


def _definitions(played: Played) -> Iterator[tuple[str, pa.Table, MergeSettings]]:
    world, rollouts = played.world, played.rollouts
    steps, exact = logged(world, rollouts), MergeSettings()
    yield TRUE, in_true_states(world, rollouts), exact
    yield "last", steps, exact
    yield "last, segments", steps, MergeSettings(merge="segments")
    tools = effects_of(steps, NUM_GROUPS).tools
    for rule in RULES:
        yield rule, restated(steps, learned(rule, tools)), exact


def _compute(steps: pa.Table, merge: MergeSettings) -> pa.Table:
    with warnings.catch_warnings():
        # That no lists of actions are logged is as people do it.
        warnings.simplefilter("ignore", CreditWarning)
        return compute(steps, estimators=["reach"], merge=merge, on_incomplete="raise")


def _fractions(played: Played, advantage: Floats) -> dict[str, float]:
    best, of_group = played.best_gain(), played.gradients(advantage, 1)
    return {
        "fraction": mean_gain(played, of_group[:MANY]) / best,
        "fraction_many": mean_gain(played, played.gradients(advantage, MANY)) / best,
    }


if __name__ == "__main__":
    main()
