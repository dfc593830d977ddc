"""The list of games in `--games`: entries separated by commas, taken in turn."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from graphcredit.collector.environments.base import Task
from graphcredit.store.errors import OptionError
from graphcredit.store.plural import counted

Entry = TypeVar("Entry")


def entries_of(games: str | None, num_tasks: int, *, default: str) -> list[str]:
    """Return the entries of a list.

    Args:
        games: The list; None stands for the default, an empty text does not.
        num_tasks: The number of tasks asked for.
        default: The default list.

    Raises:
        OptionError: `num_tasks` is less than 1.
    """
    if num_tasks < 1:
        raise OptionError(f"the number of tasks must be 1 or more: got {num_tasks}")
    return [entry.strip() for entry in (default if games is None else games).split(",")]


def in_turn(
    entries: Sequence[tuple[Entry, int | None]], name: Callable[[Entry, int | None, int], str]
) -> Iterator[str]:
    """Yield names of games round by round; endless unless every entry has its seed.

    Args:
        entries: The entries, each with its seed if it names one game, which is taken once.
        name: Returns an entry's game, given its seed, if it has one, and the number of the round.
    """
    turn = 0
    while turn == 0 or any(seed is None for _, seed in entries):
        yield from (name(entry, seed, turn) for entry, seed in entries if turn == 0 or seed is None)
        turn += 1


def chosen_tasks(
    environment: str, specs: Iterable[str], num_tasks: int, *, named: Iterable[str]
) -> list[Task]:
    """Return tasks of the first `num_tasks` different specs.

    Args:
        environment: The environment's name.
        specs: The games in the order in which they are taken; may be endless.
        num_tasks: The number of tasks asked for.
        named: The games that the list names individually.

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
