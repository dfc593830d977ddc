r"""Measure `analogy` with lists of admissible actions that are missing or wrong.

    for e in 0.5 0.85 1.0; do
        graphcredit collect log/text-$e --env textworld --games custom,coin,treasure,cooking \
            --tasks 24 --group-size 8 --seed 700 --policy oracle:$e --oracle
    done
    for e in 0.5 0.85; do
        graphcredit collect log/search-$e --env search \
            --games "$(echo {2,3}hop-s{70..77} | tr ' ' ,)" --tasks 16 --group-size 8 --seed 700 \
            --max-steps 15 --policy oracle:$e --oracle
    done
    python -m experiments.analogy.lists log/*
    python -m experiments.analogy.lists log/* --nobody-wins

The exact lists of a log are replaced in the ways of `LISTS`. A cell is the mean over the games of
all stores of Spearman's correlation with the true progress. The brackets hold the mean over the
groups without a success, and the share of them with a correlation below 0. `--nobody-wins` leaves
the last step of every success out of the log.
"""

import argparse
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from experiments.analogy import ablation
from experiments.analogy.ablation import Credit, Sample
from graphcredit.credit.audit.agreement import Agreement
from graphcredit.credit.inputs.analogies import untried_actions as analogies_module
from graphcredit.credit.inputs.analogies.action_lists import ActionLists, Worth, judge_lists
from graphcredit.credit.steps.arrays import Floats

Actions: TypeAlias = list[str] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Visit:
    """A step, and all lists of its game."""

    task: str
    trajectory: str
    index: int
    state: str
    actions: Actions
    """Logged list of the state."""
    of_game: Sequence[Actions]
    """The list of every step of the game."""
    menu: list[str]
    """All actions of these lists."""

    def draw(self, *of: object) -> float:
        """Return a number between 0 and 1 that depends only on the game and the arguments."""
        digest = hashlib.blake2b(repr((self.task, *of)).encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little") / 2**64

    def other(self, *of: object) -> Actions:
        """Return the list of a step of the game that depends only on the arguments."""
        return self.of_game[int(self.draw("list", *of) * len(self.of_game))]


def _missing(share: float) -> Callable[[Visit], Actions]:
    return lambda visit: (
        None if visit.draw("no", visit.trajectory, visit.index) < share else visit.actions
    )


def _menu(share: float) -> Callable[[Visit], Actions]:
    return lambda visit: visit.menu if visit.draw("menu", visit.state) < share else visit.actions


def _others(share: float) -> Callable[[Visit], Actions]:
    def change(visit: Visit) -> Actions:
        step = (visit.trajectory, visit.index)
        return visit.other(*step) if visit.draw("any", *step) < share else visit.actions

    return change


LISTS: dict[str, Callable[[Visit], Actions]] = {
    "exact": lambda visit: visit.actions,
    "none on half of the steps": _missing(0.5),
    "none on 9 of 10 steps": _missing(0.9),
    "none": _missing(1.0),
    "one menu in 1 of 4 states": _menu(0.25),
    "one menu in half of the states": _menu(0.5),
    "one menu in 3 of 4 states": _menu(0.75),
    "one menu": _menu(1.0),
    "another's on 1 of 10 steps": _others(0.1),
    "another's on 1 of 4 steps": _others(0.25),
    "another's on half of the steps": _others(0.5),
    "another's on all steps": _others(1.0),
    "one for each number of steps": lambda visit: visit.other(visit.index),
}


def relist(steps: pa.Table, change: Callable[[Visit], Actions]) -> pa.Table:
    """Return the steps with other lists of admissible actions."""
    names = ("task_id", "trajectory_id", "step_index", "state", "admissible_actions")
    rows = list(zip(*(steps[name].to_pylist() for name in names), strict=True))
    of_game: dict[str, list[Actions]] = {}
    for task, _, _, _, actions in sorted(rows, key=lambda row: row[:3]):
        of_game.setdefault(task, []).append(actions)
    menus = {
        task: sorted(set(chain.from_iterable(filter(None, lists))))
        for task, lists in of_game.items()
    }
    lists = [
        change(
            Visit(
                task=task,
                trajectory=trajectory,
                index=index,
                state=state,
                actions=actions,
                of_game=of_game[task],
                menu=menus[task],
            )
        )
        for task, trajectory, index, state, actions in rows
    ]
    place = steps.schema.get_field_index(names[-1])
    field = steps.schema.field(place)
    return steps.set_column(place, field, pa.array(lists, field.type))


def _believed(*visits: Any) -> ActionLists:
    """Return the judgement that every list is useful, as a replacement of `judge_lists`."""
    found = judge_lists(*visits)
    return replace(found, worth=np.full_like(found.worth, Worth.USEFUL))


def _believing(sample: Sample) -> Floats:
    with patch.object(analogies_module, "judge_lists", _believed):
        return ablation.analogy()(Sample.of(sample.steps))


def _searching(novelty: Callable[[Sample], Floats]) -> Credit:
    """Return the gain on the walked graph, with a search for new states where nobody won."""
    return lambda sample: ablation.reward(
        sample.batch,
        replace(ablation.no_analogies(sample.imagined()), novelty=novelty(sample)),
    )


def _rarely_visited(sample: Sample) -> Floats:
    batch = sample.batch
    last = batch.trajectory_start[1:] - 1
    visits = np.concatenate([batch.state_of_step, batch.target_of_step[last]])
    return 1 / np.maximum(np.bincount(visits, minlength=batch.num_nodes), 1)


def _often_tried(sample: Sample) -> Floats:
    """Return the number of distinct actions taken at each node."""
    pairs = np.unique(np.stack([sample.batch.state_of_step, sample.batch.action_of_step]), axis=1)
    return np.bincount(pairs[0], minlength=sample.batch.num_nodes).astype(np.float64)


VARIANTS: dict[str, Credit] = {
    "analogy": ablation.analogy(),
    "every list believed": _believing,
    "gain on the walked graph": ablation.analogy(ablation.no_analogies),
    "… and a search for states of few visits": _searching(_rarely_visited),
    "… and a search for states of many tried actions": _searching(_often_tried),
}


def cut_short(steps: pa.Table) -> pa.Table:
    """Return the steps without the last one of each success, so that nobody wins."""
    rows = steps.sort_by([("trajectory_id", "ascending"), ("step_index", "ascending")]).to_pylist()
    ends = [number for number, row in enumerate(rows) if row["success"]]
    for end in ends:
        if rows[end]["step_index"]:
            rows[end - 1] |= {"success": False, "truncated": True}
    kept = [row for number, row in enumerate(rows) if number not in set(ends)]
    return pa.Table.from_pylist(kept, schema=steps.schema)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stores", type=Path, nargs="+")
    parser.add_argument("--group-size", type=int, default=8, help="the first rollouts of a task")
    parser.add_argument("--nobody-wins", action="store_true")
    options = parser.parse_args()
    logs = {
        path.name: ablation.read(path, options.group_size, None, None) for path in options.stores
    }
    if options.nobody_wins:
        logs = {name: cut_short(steps) for name, steps in logs.items()}
    won = {(name, task) for name, steps in logs.items() for task in _won(steps)}
    print(
        f"| lists | useful in | {' | '.join(VARIANTS)} |\n| --- |{' --- |' * (len(VARIANTS) + 1)}"
    )
    for title, change in LISTS.items():
        changed = {name: relist(steps, change) for name, steps in logs.items()}
        found = {name: ablation.judge_steps(steps, VARIANTS) for name, steps in changed.items()}
        cells = [_cell(found, variant, won) for variant in VARIANTS]
        print(f"| {title} | {_useful(changed.values()):.0%} | {' | '.join(cells)} |", flush=True)


def _won(steps: pa.Table) -> set[str]:
    pairs = zip(steps["task_id"].to_pylist(), steps["success"].to_pylist(), strict=True)
    return {task for task, success in pairs if success}


def _useful(logs: Iterable[pa.Table]) -> float:
    """Return the share of groups in which `analogy` uses the lists."""
    return (
        np.concatenate([Sample.of(steps).imagined().lists.is_useful for steps in logs])
        .mean()
        .item()
    )


def _cell(
    found: Mapping[str, Mapping[str, list[Agreement]]], variant: str, won: set[tuple[str, str]]
) -> str:
    judged = [
        (agreement.over_all, (name, agreement.task_id) in won)
        for name, variants in found.items()
        for agreement in variants[variant]
        if agreement.over_all is not None
    ]
    lost = [value for value, is_won in judged if not is_won]
    mean = np.mean([value for value, _ in judged])
    if not lost:
        return f"{mean:.3f}"
    return f"{mean:.3f} ({np.mean(lost):.3f}, {np.mean(np.array(lost) < 0):.0%})"


if __name__ == "__main__":
    main()
