"""The groups that a merge learns from: all of an iteration, or as many as is enough."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from graphcredit.credit.merging.candidates import Candidates
from graphcredit.credit.merging.segments.looks.visits import Visits, visits_of
from graphcredit.credit.steps.arrays import factorise

_VISITS = 10_000
"""Enough to learn from; groups are taken whole."""

_CHARACTERS = 1 << 26
"""Of texts, in all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SampledGroups:
    """Visits of whole groups."""

    texts: list[str]
    """The text of each node."""
    visits: Visits
    """All visits; groups are numbered from 0."""
    actions: list[str]
    """What was done there: the text of each code of `visits.taken`."""

    @property
    def has_noise(self) -> bool:
        """Whether one state was certainly seen with two texts."""
        return len(np.unique(self.visits.certain)) < len(
            factorise(self.visits.certain * (len(self.texts) + 1) + self.visits.node)[1]
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Group:
    """One group."""

    mark: bytes
    """Hash of its task: its place in the order in which groups are taken."""
    texts: list[str]
    visits: Visits
    """Its group has number 0."""
    actions: list[str]

    @property
    def weight(self) -> float:
        """Share of what is enough."""
        size = sum(map(len, self.texts))
        return max(len(self.visits.node) / _VISITS, size / _CHARACTERS)


def take_sample(batches: Iterable[Candidates]) -> SampledGroups:
    """Return groups in the order of a hash of their task, until there is enough.

    Which groups are taken does not depend on the batches that they are in.
    """
    chosen: list[_Group] = []
    for found in batches:
        chosen = _enough([*chosen, *_groups(found)])
    return _joined(chosen)


def _enough(groups: list[_Group]) -> list[_Group]:
    groups = sorted(groups, key=lambda group: group.mark)
    before = np.cumsum([0.0, *(group.weight for group in groups)])
    return groups[: int(np.searchsorted(before, 1.0))]


def _groups(found: Candidates) -> Iterator[_Group]:
    steps, nodes = found.steps, found.nodes
    visits = visits_of(steps, nodes, found.marks())
    order = np.argsort(visits.group, kind="stable")
    starts = np.searchsorted(visits.group[order], np.arange(len(nodes.goal_of_group) + 1))
    first_step = np.searchsorted(nodes.group_of_step, np.arange(len(nodes.goal_of_group) + 1))
    tasks = steps.task_texts.take(pa.array(steps.task[first_step[:-1]])).to_pylist()
    marks = [hashlib.blake2b(task.encode(), digest_size=16).digest() for task in tasks]
    room = 1.0
    for group in sorted(range(len(marks)), key=marks.__getitem__):
        # No group after these is taken, whatever other batches hold.
        if room <= 0:
            return
        rows = order[starts[group] : starts[group + 1]]
        start, stop = first_step[group], first_step[group + 1]
        node, distinct = factorise(visits.node[rows])
        taken = np.unique(steps.action[start:stop])
        action = visits.taken[rows]
        one = _Group(
            mark=marks[group],
            texts=[found.forms[code] for code in found.form_of(nodes)[distinct].tolist()],
            visits=Visits(
                node=node,
                certain=factorise(visits.certain[rows])[0],
                walked=factorise(visits.walked[rows])[0],
                group=np.zeros(len(rows), np.int64),
                index=visits.index[rows],
                trajectory=factorise(visits.trajectory[rows])[0],
                succeeds=visits.succeeds[rows],
                taken=np.where(action < 0, -1, np.searchsorted(taken, action)),
                is_valid=visits.is_valid[rows],
                outcome=visits.outcome[rows],
            ),
            actions=steps.action_texts.take(pa.array(taken)).to_pylist(),
        )
        room -= one.weight
        yield one


def _joined(groups: list[_Group]) -> SampledGroups:
    num_nodes = np.cumsum([0, *(len(group.texts) for group in groups)])
    parts = [group.visits for group in groups]

    def num_of(name: str) -> np.ndarray:
        return np.cumsum([0, *(int(getattr(part, name).max(initial=-1)) + 1 for part in parts)])

    def join(name: str, offsets: np.ndarray | None = None) -> np.ndarray:
        arrays = [
            getattr(part, name) + (0 if offsets is None else offsets[position])
            for position, part in enumerate(parts)
        ]
        return np.concatenate([np.empty(0, np.int64), *arrays])

    actions = sorted({text for group in groups for text in group.actions})
    code_of = {text: code for code, text in enumerate(actions)}
    codes = [np.array([*map(code_of.__getitem__, g.actions), -1]) for g in groups]
    return SampledGroups(
        texts=[text for group in groups for text in group.texts],
        visits=Visits(
            node=join("node", num_nodes),
            certain=join("certain", num_of("certain")),
            walked=join("walked", num_of("walked")),
            group=join("group", np.arange(len(groups))),
            index=join("index"),
            trajectory=join("trajectory", num_of("trajectory")),
            succeeds=np.concatenate([np.empty(0, bool), *(part.succeeds for part in parts)]),
            taken=np.concatenate(
                [np.empty(0, np.int64), *(c[p.taken] for c, p in zip(codes, parts, strict=True))]
            ),
            is_valid=np.concatenate([np.empty(0, bool), *(part.is_valid for part in parts)]),
            outcome=join("outcome"),
        ),
        actions=actions,
    )
