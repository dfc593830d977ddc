r"""Ablation of the estimator `analogy`: its parts are left out, or replaced by others.

    for e in 0.5 0.7 0.85 0.95; do
        graphcredit collect log/$e --env textworld --games custom,coin,treasure,cooking \
            --tasks 48 --group-size 8 --seed 100 --policy oracle:$e --oracle
    done
    python -m experiments.analogy.ablation log/*

Each store has one policy and one iteration; otherwise `--run` and `--iteration` select them. A
column is the mean over games of Spearman's correlation with the true progress, over all steps and,
in brackets, over those of failures (`graphcredit.credit.audit.agreement` defines both). The last
column is over all stores, with a 95 % interval: games are drawn with replacement, each with all its
policies.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from experiments.credit_quality.averages import Mean, mean
from graphcredit.credit.audit.agreement import Agreement, agreements
from graphcredit.credit.estimators.analogy import Analogy
from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.graphgpo import GraphGpo
from graphcredit.credit.estimators.parts import state_part
from graphcredit.credit.estimators.rewardflow import RewardFlow
from graphcredit.credit.inputs.analogies import untried_actions as analogies_module
from graphcredit.credit.inputs.analogies.jaccard import Block, compare
from graphcredit.credit.inputs.analogies.untried_actions import Analogies
from graphcredit.credit.inputs.table import INPUT_NAMED
from graphcredit.credit.iteration.assemble import assemble
from graphcredit.credit.steps.arrays import Floats, Ints
from graphcredit.store import open_store
from graphcredit.store.sql.catalog import connect

Credit: TypeAlias = "Callable[[Sample], Floats]"
"""Function that returns the credit of each step, [num_steps]."""

_STEPS = """
    SELECT steps.*, regexp_extract(trajectory_id, ':([0-9]+)(\\.[0-9]+)?$', 1)::INT AS rollout
    FROM steps JOIN trajectories USING (run_id, iteration, trajectory_id)
    WHERE is_complete AND rollout < ?
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stores", type=Path, nargs="+")
    parser.add_argument("--group-size", type=int, default=8, help="the first rollouts of a task")
    parser.add_argument("--run", help="run of each store")
    parser.add_argument("--iteration", type=int)
    options = parser.parse_args()
    found = {
        path.name: judge(path, options.group_size, options.run, options.iteration)
        for path in options.stores
    }
    print(f"| credit | {' | '.join(found)} | all of them |\n| --- |{' --- |' * (len(found) + 1)}")
    for name in VARIANTS:
        of_store = [found[store][name] for store in found]
        cells = [_cell(own) for own in of_store]
        everywhere = list(chain.from_iterable(of_store))
        interval = _of_games([(own.task_id, own.over_all) for own in everywhere])
        cells.append(f"{_cell(everywhere)}, {interval.low:.3f} to {interval.high:.3f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _cell(found: list[Agreement]) -> str:
    every = _of_games([(agreement.task_id, agreement.over_all) for agreement in found])
    failed = _of_games([(agreement.task_id, agreement.over_failed) for agreement in found])
    return f"{every.value:.3f} ({failed.value:.3f})"


def _of_games(found: list[tuple[str, float | None]]) -> Mean:
    """Return the mean over games of the means over the policies that played them."""
    of_game: dict[str, list[float]] = {}
    for game, value in found:
        of_game.setdefault(game, []).extend([] if value is None else [value])
    return mean([np.mean(values).item() if values else None for values in of_game.values()])


def judge(
    path: Path, group_size: int, run_id: str | None = None, iteration: int | None = None
) -> dict[str, list[Agreement]]:
    """Return how each variant agrees with the truth in each group of a store."""
    return judge_steps(read(path, group_size, run_id, iteration), VARIANTS)


def read(path: Path, group_size: int, run_id: str | None, iteration: int | None) -> pa.Table:
    """Return the steps of the first rollouts of each task."""
    with connect(open_store(path), run_id=run_id, iteration=iteration) as connection:
        return connection.sql(_STEPS, params=[group_size]).to_arrow_table()


def judge_steps(steps: pa.Table, variants: "dict[str, Credit]") -> dict[str, list[Agreement]]:
    """Return how each variant agrees with the truth in each group of some steps."""
    sample = Sample.of(steps)
    judged = steps.take(pa.array(sample.row))
    for number, credit in enumerate(variants.values()):
        rounded = pa.array(credit(sample).astype(np.float32))
        judged = judged.append_column(f"v{number}", rounded)
    with duckdb.connect() as connection:
        connection.register("enriched", judged)
        connection.execute(
            "CREATE VIEW trajectories AS SELECT run_id, iteration, trajectory_id, true AS "
            "is_complete, bool_or(success) AS success FROM enriched GROUP BY ALL"
        )
        return {name: agreements(connection, f"v{number}") for number, name in enumerate(variants)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """Steps, and the batch built from them."""

    steps: pa.Table
    row: Ints
    """[num_steps] the table row of each step of the batch."""
    batch: StepBatch
    texts: list[str]
    """[num_nodes] the text of each state; empty at a goal."""

    @classmethod
    def of(cls, steps: pa.Table) -> "Sample":
        """Build the sample of some steps of one iteration."""
        assembly = assemble(steps, inputs=[INPUT_NAMED["analogies"]])
        names = assembly.steps.state_texts.to_pylist()
        texts = [names[code] if code >= 0 else "" for code in assembly.nodes.text_of_node.tolist()]
        return cls(steps=steps, row=assembly.steps.row, batch=assembly.batch, texts=texts)

    def imagined(self) -> Analogies:
        """Return the analogies of the batch."""
        assert self.batch.analogies is not None
        return self.batch.analogies

    def alike_by(self, change: Callable[..., Iterator[Block]]) -> "Sample":
        """Return the sample with another measure of similarity."""
        with patch.object(analogies_module, "compare", change):
            return Sample.of(self.steps)


def _published(estimator: GraphGpo | RewardFlow) -> Credit:
    return lambda sample: estimator.assign(sample.batch)["step_advantage"]


def analogy(change: Callable[[Analogies], Analogies] = lambda same: same, **options: Any) -> Credit:
    """Return the estimator with other analogies or options."""
    return lambda sample: reward(sample.batch, change(sample.imagined()), **options)


def reward(batch: StepBatch, imagined: Analogies, **options: Any) -> Floats:
    estimator = Analogy(**options)
    return estimator.assign(replace(batch, analogies=imagined))["step_reward"]


def _alike_by(change: Callable[..., Iterator[Block]]) -> Credit:
    return lambda sample: analogy()(sample.alike_by(change))


def _kinds(kept: slice) -> Callable[..., Iterator[Block]]:
    """Return a similarity by some kinds of sets alone: 0 is actions, 1 is words."""
    return lambda kinds, *rest: compare(kinds[kept], *rest)


def _to_the_power(power: float) -> Callable[..., Iterator[Block]]:
    return lambda *whole: (replace(block, alike=block.alike**power) for block in compare(*whole))


def no_analogies(found: Analogies) -> Analogies:
    nothing = np.empty(0, np.int64)
    return replace(
        found,
        source=nothing,
        target=nothing,
        cost=np.empty(0),
        novelty=np.zeros_like(found.novelty),
    )


def _no_search(found: Analogies) -> Analogies:
    return replace(found, novelty=np.zeros_like(found.novelty))


def _search_alone(found: Analogies) -> Analogies:
    return replace(no_analogies(found), novelty=found.novelty)


def _within_states(credit: Credit) -> Credit:
    """Return credit relative to the steps from the same state."""
    return lambda sample: state_part(sample.batch, credit(sample), normalize="std")


def _every_alike_state(sample: Sample) -> Floats:
    """Return the credit if all states that tried the action count, not only the most similar."""
    with patch.object(analogies_module, "_ROUNDING", 1.0):
        return analogy()(Sample.of(sample.steps))


def _search_everywhere(sample: Sample) -> Floats:
    """Return the credit if untried actions may lead to the goal in every group."""
    found, goals = sample.imagined(), sample.batch.goal_of_group
    exits = np.flatnonzero(found.novelty > 0)
    goal = goals[sample.batch.group_of_node[exits]]
    searched = replace(
        found,
        source=np.concatenate([found.source, exits[goal >= 0]]),
        target=np.concatenate([found.target, goal[goal >= 0]]),
        cost=np.concatenate([found.cost, 30 / found.novelty[exits[goal >= 0]]]),
    )
    return reward(sample.batch, searched)


def _ridge(sample: Sample) -> Floats:
    """Mix the gain on the walked graph with that of a regression of its distances on words."""
    batch, walked = sample.batch, no_analogies(sample.imagined())
    distance = Analogy().distance(batch, walked)
    smooth = distance.copy()
    for first, stop in pairwise(batch.node_start.tolist()):
        known = first + np.flatnonzero(np.isfinite(distance[first:stop]))
        if len(known) > 1:
            words = _bags(sample.texts[first:stop])
            words = words - words[known - first].mean(axis=0)
            kernel = words @ words[known - first].T
            centre = distance[known].mean()
            weights = np.linalg.solve(
                kernel[known - first] + np.eye(len(known)), distance[known] - centre
            )
            smooth[first:stop] = centre + kernel @ weights
    smooth[batch.goal_of_group[batch.goal_of_group >= 0]] = 0
    with np.errstate(invalid="ignore"):
        gain = smooth[batch.state_of_step] - smooth[batch.target_of_step]
    regressed = np.clip(np.nan_to_num(gain), -1, 1)
    return 0.4 * reward(batch, walked) + 0.6 * regressed


def _bags(texts: list[str]) -> Floats:
    """Return [num_texts, num_words] 1 where a text has a word."""
    words = [set(text.split()) for text in texts]
    code = {word: number for number, word in enumerate(sorted(set().union(*words)))}
    bags = np.zeros((len(texts), len(code)))
    for number, own in enumerate(words):
        bags[number, [code[word] for word in own]] = 1
    return bags


def _more_to_do(sample: Sample) -> Floats:
    """Return each step's gain in the number of admissible actions; 0 if it leads to no list."""
    lists = sample.steps["admissible_actions"]
    length = pc.call_function("list_value_length", [lists]).to_numpy()[sample.row]
    number = np.full(sample.batch.num_nodes, np.nan)
    number[sample.batch.state_of_step] = length
    return np.nan_to_num(number[sample.batch.target_of_step] - length)


def _reversible(sample: Sample) -> Floats:
    """Return the gain if every observed move can be undone at 1.5 times its cost."""
    graph = sample.batch.graph
    is_move = ~np.isin(graph.target, sample.batch.goal_of_group)
    undone = replace(
        sample.imagined(),
        source=graph.target[is_move],
        target=graph.source[is_move],
        cost=1.5 * graph.cost[is_move],
        novelty=np.zeros(sample.batch.num_nodes),
    )
    return reward(sample.batch, undone)


VARIANTS: dict[str, Credit] = {
    "GraphGPO, step part": _published(GraphGpo()),
    "RewardFlow, step part": _published(RewardFlow()),
    "gain on the walked graph, within states": _within_states(analogy(no_analogies)),
    "gain on the walked graph": analogy(no_analogies),
    "… moves can be undone at 1.5 times their cost": _reversible,
    "… with analogies, no search": analogy(_no_search),
    "… with search, no analogies": analogy(_search_alone),
    "**analogy**": analogy(),
    "analogy, within states": _within_states(analogy()),
    "search cost 3": analogy(search_cost=3.0),
    "search cost 10": analogy(search_cost=10.0),
    "search cost 100": analogy(search_cost=100.0),
    "alike by actions alone": _alike_by(_kinds(slice(0, 1))),
    "alike by words alone": _alike_by(_kinds(slice(1, 2))),
    "alike, its square root": _alike_by(_to_the_power(0.5)),
    "alike, squared": _alike_by(_to_the_power(2.0)),
    "every state that tried the action": _every_alike_state,
    "search in groups with a success too": _search_everywhere,
    "60 % of the distance from a ridge regression on words": _ridge,
    "gain in the number of admissible actions": _more_to_do,
}
"""Name to credit. The first entries lead from the published estimators to ours."""


if __name__ == "__main__":
    main()
