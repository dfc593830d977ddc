"""What the trajectories of a log have in common: returns, fields of their records, openings."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import mean, median

from graphcredit.collector.importers.messages.rollout import NO_WORDS
from graphcredit.collector.importers.policies import Policies
from graphcredit.collector.importers.prompts import Prompts, may_name_tasks
from graphcredit.collector.importers.rules.outcomes import BY_PROMPT, RETURN
from graphcredit.collector.importers.trajectory import ImportedTrajectory
from graphcredit.store.plural import counted

_MOST_VALUES = 1_000
"""Different values from which a field is no name of a task."""

_SHOWN_FIELDS = 3

_TASKS = 1_000
"""Tasks whose first states are compared."""

_TASK_WORDS = ("task", "scenario", "problem", "question", "case", "env", "seed", "prompt", "goal")


@dataclass(kw_only=True, slots=True)
class Observed:
    """Counts over the trajectories of a log."""

    returns: list[float] = field(default_factory=list[float])
    """Of those whose log says something of their reward or success."""
    prompts: Prompts = field(default_factory=Prompts)
    policies: Policies = field(default_factory=Policies)
    _numbers: Counter[str] = field(default_factory=Counter[str])
    _grouped_by: Counter[str] = field(default_factory=Counter[str])
    _fields: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    """Values of each field, up to one more than `_MOST_VALUES`."""
    _openings: dict[bytes, str] = field(default_factory=dict[bytes, str])
    """The first two different first answers."""
    _tasks: set[str] = field(default_factory=set[str])
    """The first two different groups."""
    _begun: defaultdict[tuple[str, bytes, bytes], Counter[bytes]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    """What was seen after the same first act in the same first state, where the prompt groups."""

    _firsts: defaultdict[str, Counter[tuple[bytes, bytes]]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    """First states with first acts, by task, where only the name of a field tells."""
    _state_field: str = ""

    def add(self, made: ImportedTrajectory) -> None:
        """Count a trajectory."""
        success = made.verdict.success
        self._numbers.update(all=1, won=success is True, lost=success is False)
        if made.total is not None:
            self.returns.append(made.total)
            self._numbers["by_return"] += made.verdict.by == RETURN
        self._grouped_by[made.grouped_by] += 1
        self.prompts.add(made)
        self.policies.add(made)
        for name, value in made.labels.items():
            values = self._fields.setdefault(name, Counter())
            if len(values) <= _MOST_VALUES:
                values[value] += 1
        is_by_prompt = made.grouped_by == BY_PROMPT
        self._numbers["promptless"] += is_by_prompt and made.task_id.startswith(NO_WORDS)
        begun = made.begun
        if len(self._openings) < 2:
            self._openings.setdefault(begun.action, begun.words)
        if len(self._tasks) < 2:
            self._tasks.add(made.task_id)
        if begun.field is not None and (made.task_id in self._firsts or len(self._firsts) < _TASKS):
            self._state_field = begun.field
            self._firsts[made.task_id][begun.state, begun.action] += 1
        self._numbers["long"] += made.num_steps > 1
        if is_by_prompt and made.num_steps > 1:
            self._begun[made.task_id, begun.state, begun.action][begun.then] += 1

    def decided(self, *, are_doubtful: bool) -> Iterator[str]:
        """Yield the distribution of the returns, and what made the groups.

        Args:
            are_doubtful: Whether groups may be wrong, so that other fields are proposed.
        """
        if self.returns:
            values = len(set(self.returns))
            yield (
                f"returns: {min(self.returns):g} to {max(self.returns):g}, mean "
                f"{mean(self.returns):.3g}, median {median(self.returns):g} "
                f"({counted(values, 'value')})"
            )
        by = ", ".join(f"{name} ({count:,})" for name, count in self._grouped_by.items())
        if by:
            yield f"groups by {by}{self._other_fields() if are_doubtful else ''}"

    def _other_fields(self) -> str:
        """Return which fields would make groups, where the prompt does."""
        if BY_PROMPT not in self._grouped_by:
            return ""
        number = self._numbers["all"]
        shared = {
            name: len(values)
            for name, values in self._fields.items()
            if 1 < len(values) <= min(number / 2, _MOST_VALUES)
            if may_name_tasks(name)
        }
        order = sorted(shared, key=lambda n: not any(w in n.lower() for w in _TASK_WORDS))
        named = [
            f"{name} has {shared[name]:,} values in {counted(number, 'record')}: --group {name}"
            for name in order[:_SHOWN_FIELDS]
        ]
        return f". {'; '.join(named)}" if named else ""

    def warnings(self) -> Iterator[str]:
        """Yield what may be wrong with scores and groups."""
        yield from self._of_scores()
        yield from filter(None, (self.prompts.sentence(), self.policies.sentence()))
        if self._are_effects():
            name = self._state_field
            yield (
                f"the first `{name}` of a task differs by the first action, and is the same after "
                "the same one: it is what the action led to, and is taken for the state before it. "
                f"--columns next_state={name} mends that"
            )
        if self._numbers["promptless"] > 1:
            yield (
                f"{self._numbers['promptless']:,} rollouts begin without a prompt, and nothing "
                "names their task, so they are one group: --group names a field, or import each "
                "task with a --run of its own"
            )
        number = self._numbers["all"]
        may_be_prompt = BY_PROMPT in self._grouped_by or len(self._tasks) > 1
        is_opening = len(self._openings) == 1 and self._numbers["long"] == number > 1
        if is_opening and may_be_prompt:
            (words,) = self._openings.values()
            if words:
                yield (
                    f"all {number:,} rollouts begin with the same answer, {words!r}: if it is "
                    "part of the prompt, mark it with `loss: false`; as a step, it hides the task "
                    "from groups by prompt"
                )
        for (task, *_), then in self._begun.items():
            if len(then) > 1 and min(then.values()) > 1:
                yield (
                    f"the group {task!r} falls into {len(then):,} classes that saw different "
                    "things after the same first act: are these several tasks? --group names a "
                    "field that tells them apart"
                )
                return

    def _are_effects(self) -> bool:
        """Return whether first states follow from first acts, in most tasks where acts differ."""
        follow = several = shared = 0
        for pairs in self._firsts.values():
            states, acts = ({pair[part] for pair in pairs} for part in (0, 1))
            if len(acts) > 1:
                several += 1
                follow += len(states) == len(acts) == len(pairs)
                shared += sum(pairs.values()) > len(pairs)
        return 2 * follow > several and (shared > 0 or several > 2)

    def _of_scores(self) -> Iterator[str]:
        numbers = self._numbers
        judged = numbers["won"] + numbers["lost"]
        if numbers["by_return"]:
            yield (
                f"{counted(numbers['by_return'], 'return')} that say nothing of winning: rollouts "
                "are compared by them, and `success` is unknown. Estimators that read wins alone "
                "need --success 'reward>=NUMBER', which says what a win is"
            )
        if judged > 1 and not (numbers["won"] and numbers["lost"]):
            what = "succeeded" if numbers["won"] else "failed"
            yield (
                f"all {judged:,} judged rollouts {what}: estimators that read success have "
                "nothing to compare. --success says what counts"
            )
        if 0 < judged < numbers["all"] - numbers["by_return"] and not (
            numbers["won"] and numbers["lost"]
        ):
            yield (
                "only one outcome has a verdict, and the other rollouts have none: a log that "
                "judges winners alone is a selection, and no estimator can learn from it"
            )
