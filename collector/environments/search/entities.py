"""The entity-relation graph of search tasks: the entities around the answer of each question."""

from collections.abc import Iterable

import pyarrow as pa

from graphcredit.collector.environments.base import Task
from graphcredit.collector.environments.search.facts import Facts, breadth_first, load_facts
from graphcredit.collector.environments.search.questions import Question, question_named
from graphcredit.store.parquet.er_graph import ENTITY_SCHEMA, RELATION_SCHEMA, ErGraph


def er_graph_of(tasks: Iterable[Task]) -> ErGraph:
    """Return the entities and relations of some tasks."""
    facts = load_facts()
    entities: list[dict[str, str | bool]] = []
    relations: list[dict[str, str]] = []
    for task in tasks:
        question = question_named(task.spec)
        near = entities_near(facts, question)
        entities += [
            {
                "task_id": task.task_id,
                "entity_id": name,
                "name": name,
                "is_answer": name == question.answer,
            }
            for name in sorted(near)
        ]
        relations += [
            {"task_id": task.task_id, "head_id": head, "relation": relation, "tail_id": tail}
            for head in sorted(near)
            for relation, tails in sorted(facts.pages[head].items())
            for tail in tails
            if tail in near
        ]
    return ErGraph(
        entities=pa.Table.from_pylist(entities, schema=ENTITY_SCHEMA),
        relations=pa.Table.from_pylist(relations, schema=RELATION_SCHEMA),
    )


def entities_near(facts: Facts, question: Question) -> set[str]:
    """Return the entities at most one relation farther from the answer than the question's start.

    Relations count in both directions. Entities farther away do not matter for the question.
    """
    joined: dict[str, list[str]] = {}
    for name, page in facts.pages.items():
        for tail in (tail for tails in page.values() for tail in tails):
            joined.setdefault(name, []).append(tail)
            joined.setdefault(tail, []).append(name)
    distance = breadth_first(question.answer, joined)
    return {name for name, hops in distance.items() if hops <= question.hops + 1}
