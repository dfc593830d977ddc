"""What credit can be made of, as the store has it now: the marks in a credit shard's configuration.

Marks are hashes of all that an estimator's columns were made of: the step shards of the iteration
(`steps`), those of the iterations before that were read (`earlier`), and the entities of its tasks
(`entities`). The credit stage writes them; `state.py` compares them.
"""

import hashlib
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from graphcredit.store.credit_marks.described import BALANCED_KEY, INPUTS_KEY, inputs_of
from graphcredit.store.credit_marks.explained import EXPLAINED_KEY
from graphcredit.store.credit_marks.formulas import FORMULA_KEY, formula_of, is_of_other_formula
from graphcredit.store.errors import InputError
from graphcredit.store.layout import Store
from graphcredit.store.parquet.er_graph import ErGraph, read_er_graph
from graphcredit.store.parquet.shards import conform, fingerprint, open_parquet, step_columns
from graphcredit.store.state_rules.file import STATE_RULES_KEY, read_state_rules

MARKS = frozenset(
    {
        *(FORMULA_KEY, INPUTS_KEY, BALANCED_KEY, EXPLAINED_KEY),
        *("steps", "earlier", "entities", "er_graph"),
    }
)
"""Keys of a configuration that say by what estimator and formula, and of what, credit was made;
`er_graph`, of all tasks, is an older one."""

_UNREADABLE = (InputError, OSError, pa.ArrowException)
"""What cannot be read has no mark, so that credit made of it is never taken for current."""

Way: TypeAlias = Mapping[str, Any]
"""What a shard says of how an estimator's columns were made; empty where it does not say."""


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
    """What credit can be made of, as it is now; each iteration is hashed once, when asked for.

    Make one before anything is read: what changes later then makes the credit stale.
    """

    def __init__(self, store: Store, shards: Iterable[StepFile]) -> None:
        """Take the step shards that there are.

        Args:
            store: The store.
            shards: All step shards of the runs that are asked about.
        """
        self._store = store
        self._paths: defaultdict[str | None, defaultdict[int | None, list[Path]]]
        self._paths = defaultdict(lambda: defaultdict(list))
        for shard in shards:
            self._paths[shard.run_id][shard.iteration].append(shard.path)
        self._numbers = {
            run: sorted(number for number in paths if number is not None)
            for run, paths in self._paths.items()
        }
        self._chains: dict[tuple[str, int], tuple[Any, int]] = {}
        self._known: dict[tuple[object, ...], str | None] = {}

    @cached_property
    def er_graph(self) -> ErGraph:
        """The entities and relations of all tasks.

        Raises:
            InputError: The store has none, or they cannot be read.
        """
        return read_er_graph(self._store)

    def steps(self, run_id: str, iteration: int) -> str | None:
        """Return the mark of the step shards of an iteration; None if one is unreadable."""
        return self._once(self._steps, run_id, iteration)

    def marks(
        self, run_id: str, iteration: int, estimator: str, way: Way
    ) -> dict[str, str | int | None]:
        """Return the marks that credit made now would have; None where something is unreadable.

        Args:
            run_id: The run.
            iteration: The iteration.
            estimator: Whose credit.
            way: How it is made: says its inputs, and how many iterations before are read.
        """
        marks: dict[str, str | int | None] = {
            FORMULA_KEY: formula_of(estimator),
            "steps": self.steps(run_id, iteration),
        }
        window = way.get("graph_window")
        reach = window if isinstance(window, int) else 0
        inputs = inputs_of(estimator, way)
        first = 0 if "past" in inputs else max(0, iteration - reach)
        if first < iteration:
            marks["earlier"] = self._once(self._earlier, run_id, first, iteration)
        if "mentions" in inputs and "er_graph" in way:
            marks["er_graph"] = self._once(self._all_entities)
        elif "mentions" in inputs:
            marks["entities"] = self._once(self._entities, run_id, iteration)
        return marks

    def outdated(self, run_id: str, iteration: int, estimator: str, way: Way) -> list[str]:
        """Return the keys of a configuration that are not as in credit that is made now.

        The rules of the store's user are among them: they count as a source, like its steps.

        Of those only the formula where it says nothing of the steps: another program wrote it.
        """
        old = [FORMULA_KEY] if way and is_of_other_formula(estimator, way) else []
        if "steps" not in way:
            return old
        marks = self.marks(run_id, iteration, estimator, way)
        del marks[FORMULA_KEY]
        old += [name for name, mark in marks.items() if mark is None or way.get(name) != mark]
        return old + [STATE_RULES_KEY] * (way.get(STATE_RULES_KEY) != self._state_rules)

    @cached_property
    def _state_rules(self) -> str | None:
        """The digest of the user's rules, None without any; empty where they cannot be read."""
        try:
            return read_state_rules(self._store).digest
        except _UNREADABLE:
            return ""

    def _once(self, find: Callable[..., str], *arguments: object) -> str | None:
        key = (find.__name__, *arguments)
        if key not in self._known:
            try:
                self._known[key] = find(*arguments)
            except _UNREADABLE:
                self._known[key] = None
        return self._known[key]

    def _steps(self, run_id: str, iteration: int) -> str:
        return fingerprint(self._paths[run_id][iteration])

    def _earlier(self, run_id: str, first: int, iteration: int) -> str:
        """Return a hash of all iterations from `first` to before one, of none if there are none."""
        numbers = self._numbers[run_id]
        start, stop = (bisect_left(numbers, number) for number in (first, iteration))
        # Of a whole run there are many, and the next iteration asks for one more of them.
        content, done = self._chains.get((run_id, start), (hashlib.sha256(), start))
        content, done = (content.copy(), done) if done <= stop else (hashlib.sha256(), start)
        for number in numbers[done:stop]:
            mark = self._once(self._steps, run_id, number)
            if mark is None:
                raise InputError(f"iteration {number} of run {run_id} cannot be read")
            content.update(f"{number}:{mark};".encode())
        self._chains[run_id, start] = (content, stop)
        return content.hexdigest()[:16]

    def _entities(self, run_id: str, iteration: int) -> str:
        tasks: set[str] = set()
        for path in self._paths[run_id][iteration]:
            with open_parquet(path) as file:
                table = conform(
                    file.read(columns=["task_id"]), step_columns(["task_id"]), where=str(path)
                )
            tasks.update(table["task_id"].unique().to_pylist())
        return self.er_graph.of_tasks(tasks).digest()

    def _all_entities(self) -> str:
        return self.er_graph.digest()
