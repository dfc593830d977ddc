"""Parse the list of games in `--games`: entries separated by commas."""

from collections.abc import Collection, Sequence

from graphcredit.collector.environments.base import Task
from graphcredit.store.errors import OptionError
from graphcredit.store.plural import counted


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


def refuse_left_out(named: Sequence[str], tasks: Collection[Task], num_tasks: int) -> None:
    """Raise OptionError if a game that the list names is not among the tasks.

    Args:
        named: The games that the list names individually.
        tasks: The tasks to play.
        num_tasks: The number of tasks asked for.
    """
    played = {task.spec for task in tasks}
    left_out = [spec for spec in dict.fromkeys(named) if spec not in played]
    if left_out:
        raise OptionError(
            f"every named game must be played: with {counted(num_tasks, 'task')}, {len(left_out)} "
            f"would be left out, {left_out[0]} the first. Ask for more tasks, or name fewer games"
        )
