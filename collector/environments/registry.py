"""The table of all environments: name, list of tasks, and function that opens a task.

TextWorld and the planner of ALFWorld are imported only when one of their tasks is opened.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol, TypeVar

from graphcredit.collector.environments.alfworld import games as alfworld_games
from graphcredit.collector.environments.alfworld.environment import open_alfworld
from graphcredit.collector.environments.base import Environment, Task
from graphcredit.collector.environments.search import questions
from graphcredit.collector.environments.search.entities import er_graph_of
from graphcredit.collector.environments.search.environment import open_search
from graphcredit.collector.environments.sokoban import names as sokoban_names
from graphcredit.collector.environments.sokoban.environment import open_sokoban
from graphcredit.collector.environments.textworld import games as textworld_games
from graphcredit.store.errors import MissingDependencyError, OptionError
from graphcredit.store.extensions import installed
from graphcredit.store.extras import how_to_install
from graphcredit.store.parquet.er_graph import ErGraph

_Piece = TypeVar("_Piece")
_Answer = TypeVar("_Answer")


class ListTasks(Protocol):
    """Lists tasks; it needs no library of the environment."""

    def __call__(
        self, games: str | None, *, num_tasks: int, seed: int, games_dir: Path | None = None
    ) -> list[Task]:
        """Return up to `num_tasks` different tasks; the same arguments give the same tasks.

        `games` has entries separated by commas, which are taken in turn: kinds of games, and single
        games. `games_dir` is where published games are; games that are generated are not looked
        for. An entry that names nothing, or more single games than tasks, are an OptionError.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvironmentKind:
    """One row of the table."""

    list_tasks: ListTasks
    """Returns the tasks for `--games`, `--tasks` and `--seed`."""
    open: Callable[[str, Path, bool], Environment]
    """Opens a task, given its spec, the folder of games, and whether observations must
    include a winning plan."""
    library: str | None = None
    """The package that must be importable; None if no extra package is needed."""
    extra: str | None = None
    """The extra that installs it."""
    er_graph: Callable[[Sequence[Task]], ErGraph] | None = None
    """Returns the entity-relation graph of tasks; None if tasks are not about entities."""
    world_of: Callable[[str], str] = str
    """Returns the name of the world of a task, given its spec: the same for two tasks that differ
    only in the text that the player sees."""


def _open_textworld(spec: str, cache_dir: Path, with_oracle: bool) -> Environment:
    from graphcredit.collector.environments.textworld.environment import open_textworld

    return open_textworld(spec, cache_dir, with_oracle)


ENVIRONMENTS: dict[str, EnvironmentKind] = {
    "textworld": EnvironmentKind(
        list_tasks=textworld_games.list_tasks,
        open=_open_textworld,
        library="textworld",
        extra="play",
        world_of=textworld_games.world_of,
    ),
    "search": EnvironmentKind(
        list_tasks=questions.list_tasks, open=open_search, er_graph=er_graph_of
    ),
    "sokoban": EnvironmentKind(list_tasks=sokoban_names.list_tasks, open=open_sokoban),
    "alfworld": EnvironmentKind(
        list_tasks=alfworld_games.list_tasks,
        open=open_alfworld,
        library="fast_downward",
        extra="alfworld",
    ),
}


_OURS = dict(ENVIRONMENTS)


def with_registered(
    names: Iterable[str], work: Callable[[Iterator[_Piece]], Iterator[_Answer]]
) -> Callable[[Iterator[_Piece]], Iterator[_Answer]]:
    """Return work for other processes that knows the environments that were registered here.

    Args:
        names: The environments that it plays. Of those that a script or a module of the user's
            added to `ENVIRONMENTS`, the functions must be defined at a module's top level.
        work: The work of a `WorkerPool`.
    """
    added = {
        n: k for n in names if (k := ENVIRONMENTS.get(n)) is not None and k is not _OURS.get(n)
    }
    return partial(_registered, added, work) if added else work


def _registered(
    added: dict[str, EnvironmentKind],
    work: Callable[[Iterator[_Piece]], Iterator[_Answer]],
    pieces: Iterator[_Piece],
) -> Iterator[_Answer]:
    ENVIRONMENTS.update(added)
    return work(pieces)


def all_environments() -> dict[str, EnvironmentKind]:
    """Return our environments and those of installed packages, by name."""
    group = "graphcredit.environments"
    return {**ENVIRONMENTS, **installed(group, EnvironmentKind, ENVIRONMENTS)}


def environment_kind(name: str) -> EnvironmentKind:
    """Return a row of the table.

    Raises:
        OptionError: There is no environment of this name.
        MissingDependencyError: Its library is not installed.
    """
    kinds = all_environments()
    if name not in kinds:
        raise OptionError(f"environments are {', '.join(kinds)}: got {name!r}")
    kind = kinds[name]
    if kind.library is not None and find_spec(kind.library) is None:
        raise MissingDependencyError(
            f"playing {name} needs the package {kind.library!r}, which is not installed: "
            f"{how_to_install(kind.extra or '')}"
        )
    return kind
