"""An entity-relation graph drawn from the texts of a log, for `sapo` where nobody has one.

Entities are the capitalised phrases of a task's question and of what its rollouts retrieved, and
its answers. Two are related if a sentence names both, or if one heads the passage that names the
other. With triples of a knowledge base, those are the relations, near the answers only.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from graphcredit.credit.inputs.entities.find_names import fold
from graphcredit.credit.inputs.entities.names_in_text import answer_in, names_in, pairs_of
from graphcredit.store.parquet.er_graph import ENTITY_SCHEMA, RELATION_SCHEMA, ErGraph

COLUMNS = ("task_id", "trajectory_id", "step_index", "state", "next_state", "action", "success")

Triple = tuple[str, str, str]
"""Head, relation, tail."""

_HOPS = 3
"""Relations from an answer within which triples matter for its task."""


@dataclass(slots=True)
class _Task:
    """What the texts of a task name."""

    names: set[str] = field(default_factory=set[str])
    sure: set[str] = field(default_factory=set[str])
    pairs: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    answers: set[str] = field(default_factory=set[str])
    read: set[int] = field(default_factory=set[int])
    """Hashes of the texts that were read."""

    def read_text(self, text: str) -> None:
        if hash(text) in self.read:
            return
        self.read.add(hash(text))
        for passage in text.split("\n"):
            title: str | None = None
            for names, sure in names_in(passage):
                title = title or names[0]
                self.names.update(names)
                self.sure.update(sure)
                self.pairs.update(pairs_of(names))
                self.pairs.update(pair for name in names for pair in pairs_of([title, name]))


def draw_graph(
    steps: Iterable[pa.Table],
    *,
    answers: Mapping[str, Sequence[str]] | None = None,
    triples: Sequence[Triple] | None = None,
) -> ErGraph:
    """Return the entities and relations of the tasks of some steps.

    Args:
        steps: Tables with `COLUMNS`.
        answers: Of each task; by default what won rollouts answered with their last action.
        triples: Relations of a knowledge base, in place of shared sentences.
    """
    tasks: defaultdict[str, _Task] = defaultdict(_Task)
    for table in steps:
        for row in table.select(COLUMNS).to_pylist():
            task = tasks[row["task_id"]]
            if row["step_index"] == 0:
                task.read_text(row["state"])
            task.read_text(row["next_state"])
            if answers is None and row["success"] and (answer := answer_in(row["action"])):
                task.answers.add(answer)
    near = _Triples.of(triples) if triples else None
    entities: list[dict[str, str | bool]] = []
    relations: list[dict[str, str]] = []
    for task_id, task in sorted(tasks.items()):
        given = task.answers if answers is None else set(answers.get(task_id, ()))
        of_task = _related(task, given) if near is None else near.around(given)
        keys = {fold(answer) for answer in given}
        names = {fold(name): name for triple in sorted(of_task) for name in (triple[0], triple[2])}
        names |= {fold(answer): answer for answer in sorted(given)}
        entities += [
            {"task_id": task_id, "entity_id": key, "name": name, "is_answer": key in keys}
            for key, name in sorted(names.items())
        ]
        relations += [
            {"task_id": task_id, "head_id": fold(head), "relation": relation, "tail_id": fold(tail)}
            for head, relation, tail in sorted(of_task)
        ]
    return ErGraph(
        entities=pa.Table.from_pylist(entities, schema=ENTITY_SCHEMA),
        relations=pa.Table.from_pylist(relations, schema=RELATION_SCHEMA),
    )


def _related(task: _Task, answers: Iterable[str]) -> set[Triple]:
    """Return the relations between names; of the unsure ones, those of answers and sure ones."""
    keys = {fold(answer) for answer in answers}
    known = {name for name in task.names if name in task.sure or fold(name) in keys}
    return {(a, "named with", b) for a, b in task.pairs if a in known and b in known}


@dataclass(frozen=True, slots=True)
class _Triples:
    """Triples by the folded names of both their ends."""

    by_name: Mapping[str, list[Triple]]

    @classmethod
    def of(cls, triples: Iterable[Triple]) -> "_Triples":
        by_name: defaultdict[str, list[Triple]] = defaultdict(list)
        for triple in triples:
            for end in {fold(triple[0]), fold(triple[2])}:
                by_name[end].append(triple)
        return cls(by_name)

    def around(self, answers: Iterable[str]) -> set[Triple]:
        """Return the triples on the ways of `_HOPS` relations from the answers."""
        near = {fold(answer) for answer in answers}
        chosen: set[Triple] = set()
        for _ in range(_HOPS):
            chosen.update(triple for name in near for triple in self.by_name.get(name, ()))
            near = {fold(end) for triple in chosen for end in (triple[0], triple[2])}
        return chosen
