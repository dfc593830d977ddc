"""What credit by rules for states is worth to agents with tools, where the truth is known.

    python -m experiments.credit_truth.tools.run --out tools
    python -m experiments.credit_truth.tools.run --out tools --design      # tasks for design

For each task of the service and kind of policy, groups are sampled and logged as people log them.
Rules turn the logs into states, evidence recommends one of them, and the exact yardstick says what
credit by each is worth to learning.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from experiments import options
from experiments.credit_truth.judge import MANY, Played, Unit, made_by, units
from experiments.credit_truth.settings import TUNED
from experiments.credit_truth.states.run import GROUPS_FOR_WORTH, NUM_GROUPS, knowledge, mean_gain
from experiments.credit_truth.tools.log import TRUE, effects_of, in_true_states, logged
from experiments.credit_truth.worlds.table import DESIGN_TOOL_WORLDS, TOOL_WORLDS
from experiments.episodes import Floats, Ints, advantages, credit_of
from experiments.jobs import made
from experiments.report import publish
from graphcredit.collector.states.restate import restated
from graphcredit.collector.states.table import learned
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.evidence.knowledge import Knowledge
from graphcredit.credit.merging.table import MergeSettings

RULES = ("results", "calls", "facts", "effects", "effects+last-tool")
"""What `graphcredit evidence` judges besides the logged states, without the work tree."""

CONTROLS = ("grpo", "discounted", "discounted, tuned on scores")


def main() -> None:
    parser = options.parser(__doc__)
    parser.add_argument("--design", action="store_true", help="the tasks for design")
    parser.add_argument("--seeds", type=int, default=2, help="policies of each kind in a task")
    given = parser.parse_args()
    chosen = units(
        tuple(DESIGN_TOOL_WORLDS if given.design else TOOL_WORLDS),
        num_seeds=given.seeds,
        num_groups=GROUPS_FOR_WORTH,
        estimators=("reach",),
    )
    rows = made(given.out / "units", chosen, judge, made_by, given.workers)
    publish(rows, given.out, "tools")


def judge(unit: Unit) -> pl.DataFrame:
    """Return a row for each definition of a state, and for each control that has none.

    `fraction` is that of the true gain with one group, `fraction_many` that with `MANY`.
    """
    played = Played.of(unit)
    of_unit = {"world": unit.world, "policy": unit.policy, "seed": unit.seed}
    rows: list[dict[str, Any]] = [
        {"definition": definition.name, "company": definition.knowledge.company}
        | {"evidence": definition.knowledge.evidence().value}
        | {"beyond": definition.knowledge.beyond_chance().value}
        | _fractions(played, definition.advantage)
        for definition in _definitions(played)
    ]
    steps = logged(played.world, played.rollouts)
    controls = {name: TUNED[name] for name in CONTROLS if name in TUNED}
    controls |= configure(name for name in CONTROLS if name not in TUNED)
    for name, advantage in advantages(steps, controls).items():
        rows.append({"definition": name} | _fractions(played, advantage))
    exact, rollouts = played.exact, played.rollouts
    truth = exact.advantage[rollouts.time, rollouts.state, rollouts.action]
    rows.append({"definition": "exact Q - V"} | _fractions(played, truth))
    return pl.DataFrame([of_unit | row for row in rows], infer_schema_length=None)


@dataclass(frozen=True, slots=True)
class _Definition:
    """A definition of a state on the log of a unit."""

    name: str
    knowledge: Knowledge
    advantage: Floats
    """[num_steps] of `reach`."""


def _definitions(played: Played) -> Iterator[_Definition]:
    steps, exact = logged(played.world, played.rollouts), MergeSettings()

    def judged(name: str, steps: pa.Table, merge: MergeSettings = exact) -> _Definition:
        node, advantage = _compute(steps, merge)
        return _Definition(name, knowledge(played, node), advantage)

    yield judged(TRUE, in_true_states(played.world, played.rollouts))
    yield judged("last", steps)
    yield judged("last, segments", steps, MergeSettings(merge="segments"))
    effects = effects_of(steps, NUM_GROUPS)
    for rule in RULES:
        yield judged(rule, restated(steps, learned(rule, effects.tools)))


def _compute(steps: pa.Table, merge: MergeSettings) -> tuple[Ints, Floats]:
    """Return the node of each step, and its advantage of `reach`."""
    credit = credit_of(steps, "reach", merge)
    node = np.unique(credit["state_id"].to_numpy(), return_inverse=True)[1]
    return node, credit["reach_advantage"].to_numpy().astype(np.float64)


def _fractions(played: Played, advantage: Floats) -> dict[str, float]:
    best, of_group = played.best_gain(), played.gradients(advantage, 1)
    return {
        "fraction": mean_gain(played, of_group[:MANY]) / best,
        "fraction_many": mean_gain(played, played.gradients(advantage, MANY)) / best,
    }


if __name__ == "__main__":
    main()
