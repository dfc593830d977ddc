"""The sources of credit, and the marks of what they are now.

A mark is a hash of a source. The credit stage writes the marks into the configuration of columns,
and `freshness.py` compares them with those of today. What is added to `SOURCES` is marked, compared
and watched; an input names its sources in its row.
"""

import hashlib
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from graphcredit.store.errors import InputError
from graphcredit.store.layout import Store
from graphcredit.store.parquet.er_graph import ErGraph, read_er_graph
from graphcredit.store.parquet.shards import conform, fingerprint, open_parquet, step_columns
from graphcredit.store.provenance.configuration import SOURCES_KEY, STATE_KEY, CreditConfiguration
from graphcredit.store.state_rules import STATE_RULES_KEY, read_state_rules

STATES_SOURCE = "states"
"""States by a rule: marked for the rule that the configuration names."""

UNREADABLE = ""
"""The mark of what cannot be read: credit made of it is never current."""


class StepFile(Protocol):
    """A step shard, or any file that is one by its path."""

    @property
    def path(self) -> Path:
        """Return where it is."""
        ...

    @property
    def run_id(self) -> str | None:
        """Return the run its path names."""
        ...

    @property
    def iteration(self) -> int | None:
        """Return the iteration its path names."""
        ...


class Sources:
    """The sources of credit as they are now; each is hashed once, when it is asked for.

    Make one before anything is read: what changes later then makes the credit stale.
    """

    def __init__(self, store: Store, shards: Iterable[StepFile]) -> None:
        """List the step shards.

        Args:
            store: The store.
            shards: All step shards of the runs that are asked about.
        """
        self.store = store
        self._paths: defaultdict[str | None, defaultdict[int | None, list[Path]]]
        self._paths = defaultdict(lambda: defaultdict(list))
        for shard in shards:
            self._paths[shard.run_id][shard.iteration].append(shard.path)
        self._numbers = {
            run: sorted(number for number in paths if number is not None)
            for run, paths in self._paths.items()
        }
        self._chains: dict[tuple[str, int], tuple[Any, int]] = {}
        self._marks: dict[tuple[str, int, int, str], str | None] = {}

    @cached_property
    def er_graph(self) -> ErGraph:
        """The entities and relations of all tasks.

        Raises:
            InputError: The store has none, or they cannot be read.
        """
        return read_er_graph(self.store)

    @cached_property
    def state_rules(self) -> str | None:
        """The digest of the user's rules; None without any."""
        return read_state_rules(self.store).digest

    def paths(self, run_id: str, iteration: int) -> list[Path]:
        """Return the step shards of an iteration."""
        return self._paths[run_id][iteration]

    def mark(self, name: str, run_id: str, first: int, iteration: int) -> str | None:
        """Return the mark of a source for an iteration that reads those from `first` on."""
        key = (run_id, first, iteration, name)
        if key not in self._marks:
            try:
                self._marks[key] = _SOURCE_NAMED[name].mark(self, run_id, first, iteration)
            except (InputError, OSError, pa.ArrowException):
                self._marks[key] = UNREADABLE
        return self._marks[key]

    def steps(self, run_id: str, iteration: int) -> str | None:
        """Return the mark of the step shards of an iteration."""
        return self.mark("steps", run_id, iteration, iteration)

    def marks(
        self, run_id: str, iteration: int, configuration: CreditConfiguration
    ) -> dict[str, str | None]:
        """Return the marks of all that credit is made of now; None of a source that is not there.

        Args:
            run_id: The run.
            iteration: The iteration.
            configuration: How the credit is made: names its sources.
        """
        named = {"steps", STATE_RULES_KEY, *configuration.get(SOURCES_KEY, ())}
        first = 0 if "earlier" in named else iteration
        named = named - {"earlier"} | ({"earlier"} if first < iteration else set())
        marks = {
            row.name: self.mark(row.name, run_id, first if row.is_past else iteration, iteration)
            for row in SOURCES
            if row.name in named
        }
        if STATES_SOURCE in named:
            name = str(configuration.get(STATE_KEY))
            marks[STATES_SOURCE] = self._states(name, run_id, first, iteration)
        return marks

    def _states(self, name: str, run_id: str, first: int, iteration: int) -> str:
        """Return the mark of the states of a name, in iterations from `first` on."""
        numbers = (n for n in self._numbers[run_id] if first <= n <= iteration)
        shards = (
            shard.with_state(name).states_path
            for number in numbers
            for shard in self.store.shards(run_id, number)
        )
        try:
            return fingerprint(shards)
        except OSError:
            return UNREADABLE

    def outdated(
        self, run_id: str, iteration: int, configuration: CreditConfiguration
    ) -> list[str]:
        """Return the names of the sources that have changed since an iteration's credit was made.

        There are none where it does not say of which steps it is: another program wrote it.
        """
        if "steps" not in configuration:
            return []
        marks = self.marks(run_id, iteration, configuration)
        return [
            name
            for name, mark in marks.items()
            if mark == UNREADABLE or mark != configuration.get(name)
        ]

    def earlier(self, run_id: str, first: int, iteration: int) -> str:
        """Return a hash of all iterations from `first` to before one, of none if there are none."""
        numbers = self._numbers[run_id]
        start, stop = (bisect_left(numbers, number) for number in (first, iteration))
        # Of a whole run there are many, and the next iteration asks for one more of them.
        content, done = self._chains.get((run_id, start), (hashlib.sha256(), start))
        content, done = (content.copy(), done) if done <= stop else (hashlib.sha256(), start)
        for number in numbers[done:stop]:
            mark = self.steps(run_id, number)
            if mark == UNREADABLE:
                raise InputError(f"iteration {number} of run {run_id} cannot be read")
            content.update(f"{number}:{mark};".encode())
        self._chains[run_id, start] = (content, stop)
        return content.hexdigest()[:16]


def _entities(sources: Sources, run_id: str, iteration: int) -> str:
    """Return a hash of the entities of an iteration's tasks."""
    tasks: set[str] = set()
    for path in sources.paths(run_id, iteration):
        with open_parquet(path) as file:
            names = file.read(columns=["task_id"])
        table = conform(names, step_columns(["task_id"]), where=str(path))
        tasks.update(table["task_id"].unique().to_pylist())
    return sources.er_graph.of_tasks(tasks).digest()


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """One row of the table."""

    name: str
    """Key of its mark in a configuration."""
    plural: str
    """What a reader calls it."""
    mark: Callable[[Sources, str, int, int], str | None]
    """Returns its mark for an iteration of a run, and the first iteration that is read; None
    where it is not there."""
    is_past: bool = False
    """Whether it is the iterations before."""
    files: Callable[[Store], list[Path]] = lambda store: []
    """Returns the files outside of `steps/` that it is read from."""


SOURCES: tuple[Source, ...] = (
    Source(
        name="steps",
        plural="step shards",
        mark=lambda sources, run, _, number: fingerprint(sources.paths(run, number)),
    ),
    Source(
        name="earlier",
        plural="step shards of earlier iterations",
        mark=Sources.earlier,
        is_past=True,
    ),
    Source(
        name="entities",
        plural="entities",
        mark=lambda sources, run, _, number: _entities(sources, run, number),
        files=lambda store: sorted((store.root / "er_graph").glob("*.parquet")),
    ),
    Source(
        name=STATES_SOURCE,
        plural="states by its rule",
        mark=lambda *_: None,
        files=lambda store: sorted((store.root / "states").rglob("*.parquet")),
    ),
    Source(
        name=STATE_RULES_KEY,
        plural="rules of states",
        mark=lambda sources, *_: sources.state_rules,
        files=lambda store: [store.state_rules_path],
    ),
)

_SOURCE_NAMED = {row.name: row for row in SOURCES}


def source_named(name: str) -> Source:
    """Return the row of a source.

    Raises:
        KeyError: There is none of that name.
    """
    return _SOURCE_NAMED[name]
