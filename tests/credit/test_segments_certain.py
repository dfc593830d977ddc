"""Looks at one state are certain only where invalid actions do nothing, and chance little."""

import random
from typing import Any

import pytest

from benchmarks.noise.design import KINDS
from benchmarks.noise.disturb import disturb_steps
from graphcredit.credit.iteration.assemble import assemble
from graphcredit.credit.merging.merger import open_merger
from graphcredit.credit.merging.segments.looks.invalid import invalid_actions_move
from graphcredit.credit.merging.segments.looks.sample import SampledGroups
from graphcredit.credit.merging.segments.looks.visits import visits_of
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.steps.complete import complete_trajectories
from graphcredit.credit.steps.nodes import exact_nodes
from tests.worlds import step_table, trajectory

ROOMS = (
    "A pantry with shelves of flour.\nJars stand in a row.",
    "An attic under old beams.\nDust lies on a trunk.",
    "A cellar full of barrels.\nWater drips from the wall.",
    "A garden behind the house.\nBees hum over roses.",
    "A library of leather spines.\nA ladder leans there.",
)


def walks(*, moves: bool, num_rollouts: int = 8, slip: float = 0.0) -> list[dict[str, Any]]:
    """Return steps through rooms, of which every fifth is called invalid and moves, or not.

    A share `slip` of all moves leads anywhere.
    """
    rows: list[dict[str, Any]] = []
    for task in range(8):
        for number in range(num_rollouts):
            rng = random.Random(f"{task} {number}")
            place, path, invalid = 0, [ROOMS[0]], list[int]()
            for index in range(16):
                action = rng.choice(("on", "back", "across"))
                is_invalid = rng.random() < 0.2
                if moves or not is_invalid:
                    place = (place + {"on": 1, "back": -1, "across": 2}[action]) % len(ROOMS)
                    place = rng.randrange(len(ROOMS)) if rng.random() < slip else place
                if is_invalid:
                    invalid.append(index)
                path += [action, ROOMS[place]]
            name = f"{task}-{number}"
            rows += trajectory(name, path, task_id=f"t{task}", invalid=tuple(invalid))
    return rows


def pairs(codes: list[tuple[int, ...]]) -> int:
    return sum(codes.count(code) * (codes.count(code) - 1) for code in set(codes))


@pytest.mark.parametrize("noise", ["none", "metered", "tagged", "logged", "terminal"])
@pytest.mark.parametrize(("moves", "slip"), [(True, 0), (False, 0), (False, 0.3), (True, 0.6)])
def test_states_are_found_whatever_invalid_actions_and_chance_do(
    noise: str, moves: bool, slip: float
):
    clean = step_table(walks(moves=moves, slip=slip))
    seen = clean if noise == "none" else disturb_steps(clean, KINDS[noise], 0)
    merger = open_merger(MergeSettings(merge="segments")).learn([seen])
    truth = assemble(clean).batch.state_of_step.tolist()
    found = assemble(seen, merger=merger).batch.state_of_step.tolist()
    both = pairs(list(zip(truth, found, strict=True)))
    assert both == pairs([(code,) for code in found])
    # Where chance leads anywhere, little is certain, and texts may stay apart.
    assert slip or both == pairs([(code,) for code in truth])


def sample_of(rows: list[dict[str, Any]]) -> SampledGroups:
    steps, _ = complete_trajectories(step_table(rows))
    nodes = exact_nodes(steps)
    visits = visits_of(steps, nodes, nodes.text_of_node * 0 - 1)
    texts = steps.state_texts.to_pylist()
    names = [texts[code] for code in nodes.text_of_node.tolist()]
    return SampledGroups(texts=names, visits=visits, actions=[])


def test_the_words_before_and_after_decide():
    assert invalid_actions_move(*_of(sample_of(walks(moves=True))))
    assert not invalid_actions_move(*_of(sample_of(walks(moves=False))))


def test_without_looks_at_one_state_words_must_hardly_differ():
    assert not invalid_actions_move(*_of(sample_of(walks(moves=False, num_rollouts=1))))
    rows = trajectory("x", "A q A a B q C c D", invalid=(2,))
    assert invalid_actions_move(*_of(sample_of(rows)))


def test_nothing_is_said_without_an_invalid_action():
    assert not invalid_actions_move(*_of(sample_of(trajectory("x", "A a B b C"))))


def _of(sample: SampledGroups) -> tuple[list[str], Any]:
    return sample.texts, sample.visits


def test_walked_classes_trust_no_invalid_action():
    rows = trajectory("x", "A q A2 a B", invalid=(0,)), trajectory("y", "A3 a B2")
    visits = sample_of([step for row in rows for step in row]).visits
    # x: A, A2; y: A3; then the ends of x and y.
    order: dict[int, int] = {}
    assert [order.setdefault(code, len(order)) for code in visits.walked.tolist()] == [
        0,
        1,
        0,
        2,
        3,
    ]
    assert visits.if_invalid_actions_move().certain.tolist() == visits.walked.tolist()
