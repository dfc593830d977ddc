"""A list of games, as `--games` takes it: entries by commas, and so many tasks."""

from collections.abc import Collection, Sequence

from graphcredit.collector.environments.base import Task
from graphcredit.store.errors import OptionError


def entries_of(games: str | None, num_tasks: int, *, default: str) -> list[str]:
    """Return the entries of a list.

    Args:
        games: The list; an empty one is not none.
        num_tasks: How many tasks are wanted.
        default: The list where none is given.

    Raises:
        OptionError: No task is wanted.
    """
    if num_tasks < 1:
        raise OptionError(f"the number of tasks must be 1 or more: got {num_tasks}")
    return [entry.strip() for entry in (default if games is None else games).split(",")]


def refuse_left_out(named: Sequence[str], tasks: Collection[Task], num_tasks: int) -> None:
    """Raise OptionError where a game that a list names is not among the tasks made of it.

    Args:
        named: The games that it names one by one.
        tasks: What is played.
        num_tasks: How many tasks were wanted.
    """
    played = {task.spec for task in tasks}
    left_out = [spec for spec in dict.fromkeys(named) if spec not in played]
    if left_out:
        raise OptionError(
            f"every game that is named must be played: with {num_tasks} tasks, {len(left_out)} "
            f"would be left out, {left_out[0]} the first. Ask for more tasks, or name fewer games"
        )
