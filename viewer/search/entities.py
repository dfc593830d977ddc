"""Find the entities of a search task in a trajectory, and their distance to the answer.

The rules are those of SAPO's step reward. Names are matched as whole words, ignoring case and white
space. An entity is retrieved at the first step whose `next_state` names it. It is cited at the
first step whose `thought` names it after an earlier step retrieved it.
"""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import igraph
import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.store.parquet.er_graph import ErGraph

_WITHOUT_SPACES = (
    "CJK ",
    "HIRAGANA ",
    "KATAKANA ",
    "THAI ",
    "LAO ",
    "KHMER ",
    "MYANMAR ",
    "TIBETAN ",
)
"""Unicode name prefixes of scripts that put no spaces between words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entity:
    """An entity of a task."""

    entity_id: str
    name: str
    names: tuple[str, ...]
    """The name and its aliases."""
    is_answer: bool
    distance: int | None
    """Relations to the nearest answer, in either direction; None without a path."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskEntities:
    """The part of the entity-relation graph that belongs to one task."""

    entities: tuple[Entity, ...]
    """The entities, those near the answer first."""
    relations: tuple[tuple[str, str, str], ...]
    """Entity id, name of the relation, entity id."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mention:
    """The first step that retrieved an entity, or the first that cited it."""

    step: int
    """Position in the trajectory."""
    entity: Entity
    is_citation: bool
    """Whether the step's thought cited it; otherwise its outcome retrieved it."""


def task_entities(graph: ErGraph, task_id: str) -> TaskEntities:
    """Return the part of an entity-relation graph that belongs to one task."""
    rows = graph.entities.filter(pc.equal(graph.entities["task_id"], task_id)).to_pylist()
    related = graph.relations.filter(pc.equal(graph.relations["task_id"], task_id)).to_pylist()
    relations = tuple((row["head_id"], row["relation"], row["tail_id"]) for row in related)
    distance = _distances(rows, relations)
    entities = [
        Entity(
            entity_id=row["entity_id"],
            name=row["name"],
            names=(row["name"], *(row["aliases"] or ())),
            is_answer=row["is_answer"],
            distance=distance[row["entity_id"]],
        )
        for row in rows
    ]
    far = len(distance)
    entities.sort(key=lambda e: (far if e.distance is None else e.distance, e.name, e.entity_id))
    return TaskEntities(entities=tuple(entities), relations=relations)


def mentions(known: TaskEntities, steps: pa.Table) -> list[Mention]:
    """Return the steps of a trajectory that first retrieve or cite an entity, in order.

    Args:
        known: The entities of its task.
        steps: All steps of one trajectory, in order, with `thought` and `next_state`.
    """
    folded = [
        (entity, [fold(name) for name in entity.names if fold(name)]) for entity in known.entities
    ]
    retrieved: dict[str, int] = {}
    cited: set[str] = set()
    found: list[Mention] = []
    texts = zip(steps["thought"].to_pylist(), steps["next_state"].to_pylist(), strict=True)
    for step, (thought, outcome) in enumerate(texts):
        for entity in _named(folded, thought or ""):
            if entity.entity_id in retrieved and entity.entity_id not in cited:
                cited.add(entity.entity_id)
                found.append(Mention(step=step, entity=entity, is_citation=True))
        for entity in _named(folded, outcome or ""):
            if entity.entity_id not in retrieved:
                retrieved[entity.entity_id] = step
                found.append(Mention(step=step, entity=entity, is_citation=False))
    return found


def fold(text: str) -> str:
    """Return a text in normal form: casefolded, with single spaces, in Unicode NFC."""
    decomposed = unicodedata.normalize("NFD", text).casefold()
    return " ".join(unicodedata.normalize("NFC", decomposed).split())


def _named(folded: Sequence[tuple[Entity, list[str]]], text: str) -> Iterator[Entity]:
    text = fold(text)
    for entity, names in folded:
        if any(_has_word(text, name) for name in names):
            yield entity


def _has_word(text: str, name: str) -> bool:
    """Return whether a folded text has a folded name as a whole word."""
    start = text.find(name)
    while start >= 0:
        end = start + len(name)
        before, after = text[start - 1 : start] if start else "", text[end : end + 1]
        if not (_goes_on(before, name[0]) or _goes_on(after, name[-1])):
            return True
        start = text.find(name, start + 1)
    return False


def _goes_on(beside: str, edge: str) -> bool:
    """Return whether the character beside a name continues the word at the name's edge."""
    if not beside or not (beside == "_" or unicodedata.category(beside)[0] in "LMN"):
        return False
    return not any(unicodedata.name(c, "").startswith(_WITHOUT_SPACES) for c in (beside, edge))


def _distances(
    entities: Sequence[dict[str, Any]], relations: Sequence[tuple[str, str, str]]
) -> dict[str, int | None]:
    """Return, for each entity, the number of relations to the nearest answer."""
    ids = [row["entity_id"] for row in entities]
    ids = list(dict.fromkeys([*ids, *(end for head, _, tail in relations for end in (head, tail))]))
    place = {entity_id: index for index, entity_id in enumerate(ids)}
    answers = [place[row["entity_id"]] for row in entities if row["is_answer"]]
    if not answers:
        return dict.fromkeys(ids)
    edges = [(place[head], place[tail]) for head, _, tail in relations]
    steps = igraph.Graph(len(ids), edges).distances(source=sorted(set(answers)))
    nearest = (min(column) for column in zip(*steps, strict=True))
    return {
        entity_id: int(steps) if steps < len(ids) else None
        for entity_id, steps in zip(ids, nearest, strict=True)
    }
