"""Phrases that may be exchanged are found out, however many places there are for them."""

import random
from typing import Any

import pytest

from benchmarks.noise.disturb import disturb_steps
from graphcredit.credit.iteration.assemble import assemble
from graphcredit.credit.merging.merger import open_merger
from graphcredit.credit.merging.table import MergeSettings
from tests.worlds import step_table, trajectory

PHRASES = ("leading", "heading", "which leads")
THINGS = ("door", "gate", "hatch", "portal", "passageway", "gateway", "arch", "tunnel")
WAYS = ("north", "south", "east", "west")
ROOMS = ("A kitchen.", "An attic.", "A cellar.", "A garden.", "A library.", "A hall.")


def walks(seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return steps through rooms with a thing or two in each, reworded at every look, and not."""
    noisy: list[dict[str, Any]] = []
    clean: list[dict[str, Any]] = []
    for task in range(14):
        layout = random.Random(f"{seed} {task}")
        exits = [
            [(layout.choice(THINGS), layout.choice(WAYS)) for _ in range(layout.choice((1, 2)))]
            for _ in ROOMS
        ]
        for number in range(6):
            rng = random.Random(f"{seed} {task} {number}")
            place = 0
            paths: tuple[list[str], list[str]] = ([], [])
            for _ in range(10):
                for path, phrases in zip(paths, (PHRASES, PHRASES[:1]), strict=True):
                    seen = [
                        f"A {thing} {rng.choice(phrases)} {way}." for thing, way in exits[place]
                    ]
                    path.append("\n".join([ROOMS[place], *seen]))
                action, place = rng.choice((("on", (place + 1) % 6), ("back", (place - 1) % 6)))
                for path in paths:
                    path.append(action)
            for rows, path in zip((noisy, clean), paths, strict=True):
                rows += trajectory(f"{task}-{number}", path[:-1], task_id=f"t{task}")
    return noisy, clean


@pytest.mark.parametrize("seed", range(6))
def test_phrases_of_many_places_are_one(seed: int):
    noisy, clean = map(step_table, walks(seed))
    merger = open_merger(MergeSettings(merge="segments")).learn([noisy])
    found = assemble(noisy, merger=merger).batch.state_of_step.tolist()
    truth = assemble(clean).batch.state_of_step.tolist()
    pairs = set(zip(found, truth, strict=True))
    # No state is two: not more nodes than pairs of node and state.
    assert len(pairs) == len(set(found))
    assert len(set(found)) == len(set(truth))


def numbered(text: str, rng: random.Random, index: int) -> str:
    """Return a text with an identifier at a random place in each line."""
    lines = [line.split(" ") for line in text.splitlines()]
    for words in lines:
        words.insert(rng.randrange(len(words) + 1), f"#{rng.getrandbits(24):06x}")
    return "\n".join(" ".join(words) for words in lines)


@pytest.mark.parametrize("seed", range(3))
def test_identifiers_at_random_places_are_noise(seed: int):
    clean = step_table(walks(seed)[1])
    seen = disturb_steps(clean, numbered, seed)
    merger = open_merger(MergeSettings(merge="segments")).learn([seen])
    found = assemble(seen, merger=merger).batch.state_of_step.tolist()
    truth = assemble(clean).batch.state_of_step.tolist()
    assert len(set(zip(found, truth, strict=True))) == len(set(found))
    # In a log of this size, a few states may stay two.
    assert len(set(found)) <= 1.1 * len(set(truth))
