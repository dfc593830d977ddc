"""Definitions of a state over the visits of episodes, from the true state to none at all."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from experiments.episodes import Bools, Ints

NAMES: dict[str, str] = {
    "true": "the true state",
    "split in 2": "each state split in two at random, at every visit",
    "split in 4": "in four",
    "with time": "the true state and the time, four steps at once",
    "two views": "what is seen, and what was seen before",
    "blurred": "the true state, and 3 of 10 visits thrown into one",
    "in pairs": "true states united in pairs at random",
    "in eights": "in eights",
    "last action": "the last action alone",
    "random": "one of eight at every visit",
    "time": "the time alone",
    "one": "one state for all",
    "each": "each visit a state",
}

_BLURRED = 0.3


@dataclass(frozen=True, kw_only=True, slots=True)
class Visits:
    """The states of episodes, one after the other; that after the last step is there too."""

    state: Ints
    """[num_visits] true state."""
    shuffled: Ints
    """[num_visits] the same, numbered at random within its world."""
    view: Ints
    """[num_visits] what is seen."""
    time: Ints
    """[num_visits] steps before it."""
    last_action: Ints
    """[num_visits] -1 before the first step."""


def definitions(visits: Visits, rng: np.random.Generator) -> Iterator[Ints]:
    """Yield [num_visits] numbers of states, in the order of `NAMES`."""
    states, time, size = visits.state, visits.time, len(visits.state)
    before = np.where(time > 0, np.roll(visits.view, 1), -1)
    yield states
    yield states * 2 + rng.integers(2, size=size)
    yield states * 4 + rng.integers(4, size=size)
    yield states * (int(time.max()) + 1) + time // 4
    yield visits.view * (int(visits.view.max()) + 2) + before + 1
    yield np.where(rng.random(size) < _BLURRED, states.max() + 1, states)
    yield visits.shuffled // 2
    yield visits.shuffled // 8
    yield visits.last_action + 1
    yield rng.integers(8, size=size)
    yield time
    yield np.zeros(size, np.int64)
    yield np.arange(size)


def with_ends(of_step: Ints, after: Ints, is_last: Bools) -> Ints:
    """Return the values of all visits: of each step, and [num_episodes] after the last ones."""
    return np.insert(of_step, np.flatnonzero(is_last) + 1, after)


def before(visits: Ints, is_last: Bools) -> Ints:
    """Return [num_steps] the visit before each step."""
    return visits[_places(is_last)]


def _places(is_last: Bools) -> Ints:
    return np.arange(len(is_last)) + np.cumsum(is_last) - is_last


def restated(steps: pa.Table, visits: Ints) -> pa.Table:
    """Return steps, sorted by episode and time, with numbers of visits as their states.

    Where an episode ended for good, the state after it is whether it was won.
    """
    is_last = np.diff(steps["step_index"].to_numpy(), append=0) <= 0
    places = _places(is_last)
    texts = np.char.add("state ", visits.astype(str)).astype(object)
    ended = np.where(steps["success"].fill_null(False).to_numpy(), "won", "lost")
    after = np.where(steps["terminated"].to_numpy(), ended, texts[places + 1])
    for name, column in (("state", texts[places]), ("next_state", after)):
        place = steps.schema.get_field_index(name)
        steps = steps.set_column(place, name, pa.array(column.tolist(), pa.string()))
    return steps
