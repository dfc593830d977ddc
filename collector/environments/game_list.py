"""The list of games in `--games`: entries separated by commas, taken in turn."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import TypeVar

from graphcredit.collector.environments.base import Task
from graphcredit.store.errors import OptionError
from graphcredit.store.plural import counted

Entry = TypeVar("Entry")


def entries_of(games: str | None, num_tasks: int, *, default: str) -> list[str]:
    """Return the entries of a list."""
    if num_tasks < 1:
        raise OptionError(f"the number of tasks must be 1 or more: got {num_tasks}")
    return [entry.strip() for entry in (default if games is None else games).split(",")]


def seeded_tasks(
    environment: str,
    entries: Sequence[tuple[Entry, int | None]],
    name: Callable[[Entry, int, int], str],
    *,
    num_tasks: int,
    seed: int,
    num_rounds: int | None = None,
) -> list[Task]:
    """Return tasks, taking entries in turn, round by round.

    Args:
        environment: The environment's name.
        entries: The entries, each with its seed if it names one game, which is taken once.
        name: Returns an entry's game, given the seed and the number of the round.
        num_tasks: The number of tasks asked for.
        seed: Seed of the first round; each further round has the next one.
        num_rounds: Most rounds; without it there is always another.
    """

    def specs() -> Iterator[str]:
        for turn in count() if num_rounds is None else range(num_rounds):
            if turn and all(its_seed is not None for _, its_seed in entries):
                return
            for entry, its_seed in entries:
                if its_seed is None:
                    yield name(entry, seed + turn, turn)
                elif not turn:
                    yield name(entry, its_seed, turn)

    named = [name(entry, its_seed, 0) for entry, its_seed in entries if its_seed is not None]
    return chosen_tasks(environment, specs(), num_tasks, named=named)


def check_seed(seed: int) -> int:
    """Return the seed of a game."""
    if not 0 <= seed < 1 << 31:
        raise OptionError(f"the seed of a game must be from 0 to 2^31 - 1: got {seed}")
    return seed


def chosen_tasks(
    environment: str, specs: Iterable[str], num_tasks: int, *, named: Iterable[str]
) -> list[Task]:
    """Return tasks of the first `num_tasks` different specs.

    Raises:
        OptionError: A game of `named` is not among the tasks.
    """
    chosen: dict[str, None] = {}
    for spec in specs:
        chosen[spec] = None
        if len(chosen) == num_tasks:
            break
    left_out = [spec for spec in dict.fromkeys(named) if spec not in chosen]
    if left_out:
        raise OptionError(
            f"every named game must be played: with {counted(num_tasks, 'task')}, {len(left_out)} "
            f"would be left out, {left_out[0]} the first. Ask for more tasks, or name fewer games"
        )
    return [Task(environment=environment, spec=spec) for spec in chosen]
