"""Whether the rollouts of a group have one task: their prompts, and what tells these apart."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from graphcredit.collector.importers.rules.outcomes import BY_PROMPT
from graphcredit.collector.importers.trajectory import ImportedTrajectory
from graphcredit.store.plural import counted

_SAMPLED = 2_000
"""Trajectories whose fields are compared."""

_MOST_FIELDS = 12
"""Fields of which pairs are tried."""

VERDICTS = (
    *("reward", "score", "success", "correct", "resolved", "passed", "solved", "grade", "return"),
    *("points", "gold", "coins"),
    *("won", "result", "outcome", "verdict", "utility", "security"),
)
"""Words in names of fields that say how a rollout ended."""

NO_TASKS = (
    *(*VERDICTS, "status", "reason", "answer"),
    *("attempt", "trial", "sample", "epoch", "rollout", "model", "split", "step", "index", "run"),
    *("latency", "_ms", "tokens", "turns", "length", "time", "cost", "trunc", "date", "agent"),
    *("version", "level", "response", "completion", "prompt_", "message", "file"),
)
"""Words in names of fields that tell no tasks apart."""


def may_name_tasks(name: str) -> bool:
    """Return whether a field may tell tasks apart, by its name."""
    return not any(word in name.lower() for word in NO_TASKS)


@dataclass(frozen=True, slots=True)
class _Seen:
    task: str
    prompt: bytes
    labels: Mapping[str, str]


@dataclass(kw_only=True, slots=True)
class Prompts:
    """The prompts of groups that the log names, by about 100 bytes a group."""

    _first: dict[tuple[str, int, str], bytes] = field(
        default_factory=dict[tuple[str, int, str], bytes]
    )
    _mixed: set[tuple[str, int, str]] = field(default_factory=set[tuple[str, int, str]])
    """Groups with several prompts."""
    _sample: list[_Seen] = field(default_factory=list[_Seen])
    _grouped_by: set[str] = field(default_factory=set[str])

    def add(self, made: ImportedTrajectory) -> None:
        """Count a trajectory."""
        if made.grouped_by == BY_PROMPT or not made.begun.prompt:
            return
        group = (made.run_id, made.iteration, made.task_id)
        if self._first.setdefault(group, made.begun.prompt) != made.begun.prompt:
            self._mixed.add(group)
        self._grouped_by.add(made.grouped_by)
        if len(self._sample) < _SAMPLED:
            self._sample.append(_Seen(made.task_id, made.begun.prompt, made.labels))

    def sentence(self) -> str | None:
        """Return that groups hold several tasks, and what tells them apart; None if they do not.

        Prompts of one task may differ, too: they do where no field tells them apart.
        """
        if not self._mixed:
            return None
        told = self.remedy()
        if told is None:
            return None
        return (
            f"a group must be of one task: the rollouts of {len(self._mixed):,} of "
            f"{counted(len(self._first), 'group')} begin with different prompts. {told}"
        )

    @property
    def grouped_by(self) -> str:
        """The field that names the groups, as `--group` takes it."""
        by = next(iter(self._grouped_by)) if len(self._grouped_by) == 1 else "task"
        return by if " " not in by else "task"

    @property
    def are_mixed(self) -> bool:
        """Whether at least half of the groups have several prompts."""
        return 2 * len(self._mixed) >= len(self._first)

    def remedy(self) -> str | None:
        """Return the `--group` that would make groups of one prompt each; None if none would."""
        by = self.grouped_by
        for fields in self._fields(by):
            number = len({(seen.task, *_values(seen, fields)) for seen in self._sample})
            term = "+".join((*fields, by))
            return f"--group {term} makes {counted(number, 'group')} of one prompt each"
        return None

    def _fields(self, by: str) -> Iterator[tuple[str, ...]]:
        """Yield the fields that tell the prompts of each task apart, alone, else in pairs."""
        every = self._sample[0].labels.keys()
        names = [name for name in every if may_name_tasks(name) and name != by]
        names = [
            name for name in names if len({seen.labels.get(name) for seen in self._sample}) > 1
        ]
        yield from ((name,) for name in names if self._tells((name,)))
        pairs = combinations(names[:_MOST_FIELDS], 2)
        yield from (pair for pair in pairs if self._tells(pair))

    def _tells(self, fields: tuple[str, ...]) -> bool:
        """Return whether fields tell prompts apart, and that is no accident.

        Each class has one prompt then, and several rollouts, or each value is of several tasks.
        """
        prompts: defaultdict[tuple[str, ...], set[bytes]] = defaultdict(set)
        sizes: Counter[tuple[str, ...]] = Counter()
        tasks: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
        for seen in self._sample:
            values = _values(seen, fields)
            prompts[seen.task, *values].add(seen.prompt)
            sizes[seen.task, *values] += 1
            tasks[values].add(seen.task)
        if any(len(each) > 1 for each in prompts.values()):
            return False
        num_shared = sum(size for size in sizes.values() if size > 1)
        are_shared = 2 * num_shared >= len(self._sample)
        return are_shared or 2 * sum(len(each) > 1 for each in tasks.values()) > len(tasks)


def _values(seen: _Seen, fields: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(seen.labels.get(name, "") for name in fields)
