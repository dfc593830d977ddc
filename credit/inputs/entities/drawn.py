"""An entity-relation graph drawn from the texts of a log, for `sapo` where nobody has one.

Entities are the capitalised phrases of a task's question and of what its rollouts retrieved, and
its answers. Two are related if a sentence names both, or if one heads the passage that names the
other. With triples of a knowledge base, those are the relations, near the answers only.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from graphcredit.credit.inputs.entities.find_names import fold
from graphcredit.store.parquet.er_graph import ENTITY_SCHEMA, RELATION_SCHEMA, ErGraph

_WORD = r"[^\W\d_a-zß-öø-ÿ][\w'’-]*"
_LINK = r"(?: (?:of|the|de|del|la|le|du|von|van|der|di|da|al|&))?"
_PHRASE = re.compile(rf"{_WORD}(?:{_LINK} {_WORD})*")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_ANSWERED = (
    re.compile(r"(?s)<answer>\s*(.*?)\s*</answer>"),
    re.compile(r'(?s)\w+\(\{"\w+": "(.*)"\}\)'),
    re.compile(r"(?s)\w+\[(.*)\]"),
    re.compile(r"(?i)(?:final )?answer(?: is)?:\s*(.+)"),
)
_MOST_WORDS = 12
"""Words of a whole action that may be an answer."""

_NEAR = 30
"""Names of one sentence are related if at most so many stand between them: in a list of hundreds
only neighbours are."""


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


def names_in(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the names of each sentence, and those among them that are surely names.

    A single word that begins a sentence has its capital letter from there, so it is not sure.
    """
    for sentence in _SENTENCE.split(text):
        names = [(match.group(), match.start()) for match in _PHRASE.finditer(sentence)]
        if names:
            sure = [name for name, start in names if " " in name or start > 0]
            yield [name for name, _ in names], sure


def pairs_of(names: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of different names of a sentence that stand near each other."""
    for place, name in enumerate(names):
        for other in names[place + 1 : place + 1 + _NEAR]:
            if other != name:
                yield min(name, other), max(name, other)


def answer_in(action: str) -> str | None:
    """Return what an action answers, as `<answer>`, `finish[…]`, a call or `answer: …` say it.

    A short action that has none of these is an answer as it stands; a long one is None.
    """
    for pattern in _ANSWERED:
        match = pattern.search(action)
        if match and match.group(1).strip():
            return match.group(1).strip()
    short = action.strip()
    return short if 0 < len(short.split()) <= _MOST_WORDS else None
