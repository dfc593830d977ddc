"""Mentions of entities in the steps of a batch, and how far each is from its task's answer.

Texts and names end here: an estimator sees numbers of steps and entities only.
"""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.credit.graph.distances import DistanceFinder
from graphcredit.credit.inputs.entities.find_names import NameFinder
from graphcredit.credit.steps.arrays import (
    Bools,
    Floats,
    Ints,
    factorise_pairs,
    ranges,
    starts_of_runs,
)
from graphcredit.credit.steps.codes import Codes, encode
from graphcredit.credit.steps.complete import Steps
from graphcredit.store.parquet.er_graph import ErGraph


@dataclass(frozen=True, kw_only=True, slots=True)
class Mentions:
    """Which step comes across which entity of its task.

    Entities of all tasks are numbered together, so no two tasks share one.
    """

    retrieved_step: Ints
    """[num_retrieved] a step whose `next_state` names an entity, ascending."""
    retrieved_entity: Ints
    """[num_retrieved] that entity; each pair of step and entity stands here once."""
    cited_step: Ints
    """[num_cited] a step whose `thought` names an entity, ascending."""
    cited_entity: Ints
    """[num_cited] that entity; each pair of step and entity stands here once."""
    answer_distance: Floats
    """[num_entities] relations to the nearest answer, in either direction; inf without a path."""
    has_entities: Bools
    """[num_groups] whether anything is known of the group's task."""
    has_answer: Bools
    """[num_groups] whether an entity of the task is marked as its answer."""


def find_mentions(graph: ErGraph, steps: Steps, thought: pa.ChunkedArray) -> Mentions:
    """Find the entities of each step's task in what it retrieved and what it thought.

    Each task's names are prepared once, and each distinct state of a task is looked at once.

    Args:
        graph: Entities and relations, of these tasks and of others.
        steps: Complete trajectories.
        thought: [rows of the table] the column that the steps came with; null names nothing.

    Raises:
        MissingDependencyError: The extra `er` is not installed.
    """
    task_of_group = steps.task[starts_of_runs(steps.task)[:-1]]
    known = _Known.of_tasks(graph, steps.task_texts, task_of_group)
    num_tasks = len(steps.task_texts)
    with_entities = np.bincount(known.task, minlength=num_tasks)
    with_answer = np.bincount(known.task[known.is_answer], minlength=num_tasks)
    finder = _finder(known)
    retrieved_step, retrieved_entity = _find(
        finder, steps.task, Codes(code=steps.next_state, texts=steps.state_texts)
    )
    # Thoughts seldom repeat: each is looked at, rather than all of them compared with each other.
    thoughts = thought.cast(pa.large_string()).combine_chunks().take(pa.array(steps.row))
    cited_step, cited_entity = finder.find(steps.task, thoughts)
    return Mentions(
        retrieved_step=retrieved_step,
        retrieved_entity=retrieved_entity,
        cited_step=cited_step,
        cited_entity=cited_entity,
        answer_distance=known.answer_distance(),
        has_entities=with_entities[task_of_group] > 0,
        has_answer=with_answer[task_of_group] > 0,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Known:
    """The part of an entity-relation graph that some tasks are about; row by row."""

    task: Ints
    """[num_rows] code of the task, for each row of the entities."""
    entity: Ints
    """[num_rows] number of the entity."""
    is_answer: Bools
    """[num_rows] whether it answers the task."""
    names: list[str]
    """[num_rows] its name."""
    aliases: list[list[str] | None]
    """[num_rows] its other names."""
    head: Ints
    """[num_relations] number of an entity."""
    tail: Ints
    """[num_relations] number of the other."""
    num_entities: int
    """Entities of all tasks, with those that only relations name."""

    @classmethod
    def of_tasks(cls, graph: ErGraph, task_texts: pa.Array, tasks: Ints) -> "_Known":
        entities, task = _rows_of(graph.entities, task_texts, tasks)
        relations, task_of_relation = _rows_of(graph.relations, task_texts, tasks)
        columns = (entities["entity_id"], relations["head_id"], relations["tail_id"])
        ids = encode(
            pa.chunked_array([c for column in columns for c in column.chunks], pa.string())
        )
        owner = np.concatenate([task, task_of_relation, task_of_relation])
        number, owner_of_entity, _ = factorise_pairs(owner, ids.code)
        entity, head, tail = np.split(number, np.cumsum([len(task), len(task_of_relation)]))
        return cls(
            task=task,
            entity=entity,
            is_answer=entities["is_answer"].to_numpy(),
            names=entities["name"].to_pylist(),
            aliases=entities["aliases"].to_pylist(),
            head=head,
            tail=tail,
            num_entities=len(owner_of_entity),
        )

    def answer_distance(self) -> Floats:
        """Return [num_entities] the relations to the nearest answer, of all tasks in one search."""
        find = DistanceFinder(
            np.concatenate([self.head, self.tail]),
            np.concatenate([self.tail, self.head]),
            self.num_entities,
            self.entity[self.is_answer],
        )
        return find(np.ones(2 * len(self.head)))


def _rows_of(table: pa.Table, task_texts: pa.Array, tasks: Ints) -> tuple[pa.Table, Ints]:
    """Return the rows of some tasks, sorted by task, and the code of each row's task."""
    position = pc.index_in(table["task_id"], value_set=task_texts)
    code = pc.fill_null(position, -1).to_numpy().astype(np.int64)
    rows = np.flatnonzero(np.isin(code, tasks))
    rows = rows[np.argsort(code[rows], kind="stable")]
    return table.take(pa.array(rows)), code[rows]


def _finder(known: _Known) -> NameFinder:
    return NameFinder(
        (task, name, entity)
        for task, entity, first, others in zip(
            known.task.tolist(), known.entity.tolist(), known.names, known.aliases, strict=True
        )
        for name in (first, *(others or ()))
    )


def _find(finder: NameFinder, task: Ints, text: Codes) -> tuple[Ints, Ints]:
    """Return (step, entity) of every mention, looking once at each distinct text of a task."""
    pair, task_of_pair, text_of_pair = factorise_pairs(task, text.code)
    named_in, entity = finder.find(task_of_pair, text.texts.take(pa.array(text_of_pair)))
    step, place = ranges(np.bincount(named_in, minlength=len(task_of_pair)), pair)
    return step, entity[place]
